import ale_py
import gymnasium
import pytest

from atari.games import ATARI_57, game_names, rom_id
from seed_rl.errors import UserError


def test_there_are_57_games() -> None:
    assert len(set(ATARI_57)) == 57
    assert len({rom_id(game) for game in ATARI_57}) == 57


def test_names_are_those_of_gymnasium() -> None:
    gymnasium.register_envs(ale_py)
    specs = [spec for spec in gymnasium.registry.values() if spec.id.startswith("ALE/")]
    assert len(specs) > 100
    for spec in specs:
        assert rom_id(spec.name) == spec.kwargs["game"]


@pytest.mark.parametrize(
    ("game", "near"), [("Pongg", "Pong"), ("ms_pacman", "MsPacman"), ("breakout", "Breakout")]
)
def test_unknown_game_names_near_misses(game: str, near: str) -> None:
    with pytest.raises(UserError, match=rf"^--game={game}: no such .*did you mean {near}\b.*\?$"):
        rom_id(game)


def test_unknown_game_without_near_miss_says_what_is_expected() -> None:
    with pytest.raises(
        UserError, match=r"^--game=xyzzy: .* expected a name like Pong or MsPacman\.$"
    ):
        rom_id("xyzzy")


@pytest.mark.parametrize(
    ("games", "names"),
    [
        ("Pong", ("Pong",)),
        ("Pong,Breakout", ("Pong", "Breakout")),
        ("MsPacman, Pong", ("MsPacman", "Pong")),
        ("atari57", ATARI_57),
    ],
)
def test_lists_of_games(games: str, names: tuple[str, ...]) -> None:
    assert game_names(games) == names


def test_a_game_twice() -> None:
    with pytest.raises(UserError, match=r"^--game: expected each task once, got Pong more than"):
        game_names("Pong,Breakout,Pong")
