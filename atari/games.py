"""Names of Atari 2600 games."""

from __future__ import annotations

from ale_py import roms

from seed_rl.task_names import split_names, unknown_name

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
      UserError: there is no such game, or one is there twice.
    """
    return split_names(games, _known, {"atari57": ATARI_57})


def rom_id(game: str) -> str:
    """ale_py's id of a game: "ms_pacman" for "MsPacman".

    Every one-player game that ale_py ships has a name, not only ATARI_57.

    Raises:
      UserError: no game has that name.
    """
    return _ROM_IDS[_known(game)]


def _known(game: str) -> str:
    if game not in _ROM_IDS:
        raise unknown_name(game, "Atari game", _ROM_IDS, "a name like Pong or MsPacman")
    return game
