"""Names of Atari 2600 games."""

from __future__ import annotations

import difflib

from ale_py import roms

from seed_rl.errors import UserError

# The benchmark of Bellemare et al. (2013), as DeepMind's papers since DQN report it.
ATARI_57 = (
    "Alien", "Amidar", "Assault", "Asterix", "Asteroids", "Atlantis", "BankHeist", "BattleZone",
    "BeamRider", "Berzerk", "Bowling", "Boxing", "Breakout", "Centipede", "ChopperCommand",
    "CrazyClimber", "Defender", "DemonAttack", "DoubleDunk", "Enduro", "FishingDerby", "Freeway",
    "Frostbite", "Gopher", "Gravitar", "Hero", "IceHockey", "Jamesbond", "Kangaroo", "Krull",
    "KungFuMaster", "MontezumaRevenge", "MsPacman", "NameThisGame", "Phoenix", "Pitfall", "Pong",
    "PrivateEye", "Qbert", "Riverraid", "RoadRunner", "Robotank", "Seaquest", "Skiing", "Solaris",
    "SpaceInvaders", "StarGunner", "Surround", "Tennis", "TimePilot", "Tutankham", "UpNDown",
    "Venture", "VideoPinball", "WizardOfWor", "YarsRevenge", "Zaxxon",
)  # fmt: skip

# These have no mode for one player.
_TWO_PLAYER_ROMS = {"combat", "joust", "maze_craze", "warlords"}
_ROM_IDS = {
    rom.title().replace("_", ""): rom
    for rom in roms.get_all_rom_ids()
    if rom not in _TWO_PLAYER_ROMS
}


def game_names(games: str) -> tuple[str, ...]:
    """Names from "Pong", "Pong,Breakout" or "atari57".

    Raises:
      UserError: a game is there twice.
    """
    names = ATARI_57 if games == "atari57" else tuple(name.strip() for name in games.split(","))
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--game: expected each game once, got {name} more than once.")
    return names


def rom_id(game: str) -> str:
    """ale_py's id of a game: "ms_pacman" for "MsPacman".

    Every one-player game that ale_py ships has a name, not only ATARI_57.

    Raises:
      UserError: no game has that name.
    """
    if game in _ROM_IDS:
        return _ROM_IDS[game]
    names = {name.lower(): name for name in _ROM_IDS}
    near = [names[match] for match in difflib.get_close_matches(game.lower(), names)]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "expected a name like Pong or MsPacman."
    )
    raise UserError(f"--game={game}: no such Atari game; {hint}")
