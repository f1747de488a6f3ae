import pytest

from dmlab.levels import DMLAB_30, TEST_TWINS, level_names, level_path
from seed_rl.errors import UserError


def test_there_are_30_levels_in_their_six_families() -> None:
    assert len(set(DMLAB_30)) == 30
    families = [name.split("_")[0] for name in DMLAB_30]
    counts = {family: families.count(family) for family in families}
    assert counts == {
        "rooms": 5,
        "language": 4,
        "lasertag": 4,
        "natlab": 3,
        "skymaze": 2,
        "psychlab": 4,
        "explore": 8,
    }


def test_twins_are_for_tests_only() -> None:
    assert len(TEST_TWINS) == 2
    for training, test in TEST_TWINS.items():
        assert training in DMLAB_30
        assert test not in DMLAB_30
        assert training.removesuffix("_train") == test.removesuffix("_test")


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        ("rooms_watermaze", ("rooms_watermaze",)),
        ("rooms_watermaze, psychlab_visual_search", ("rooms_watermaze", "psychlab_visual_search")),
        ("rooms_collect_good_objects_test", ("rooms_collect_good_objects_test",)),
        ("tests/empty_room_test,lt_chasm/x", ("tests/empty_room_test", "lt_chasm/x")),
        ("contributed/dmlab30/rooms_watermaze", ("rooms_watermaze",)),  # has scores by that name
        ("contributed/dmlab30/later_level", ("contributed/dmlab30/later_level",)),
        ("dmlab30", DMLAB_30),
    ],
)
def test_lists_of_levels(levels: str, names: tuple[str, ...]) -> None:
    assert level_names(levels) == names


def test_paths() -> None:
    assert level_path("rooms_watermaze") == "contributed/dmlab30/rooms_watermaze"
    assert level_path("tests/empty_room_test") == "tests/empty_room_test"
    later = "contributed/dmlab30/later_level"
    assert level_path(*level_names(later)) == later


@pytest.mark.parametrize(
    "levels", ["rooms_watermaz", "Rooms_Watermaze", "dmlab30,rooms_watermazes"]
)
def test_unknown_level_names_near_misses(levels: str) -> None:
    with pytest.raises(UserError, match=r"^--game=\w+: no such level of DMLab-30; "):
        level_names(levels)
    with pytest.raises(UserError, match=r"did you mean .*\brooms_watermaze\b.*\?$"):
        level_names(levels.removeprefix("dmlab30,"))


def test_unknown_level_without_near_miss_says_what_is_expected() -> None:
    with pytest.raises(UserError, match=r"^--game=xyzzy: .* expected a name like rooms_watermaze"):
        level_names("xyzzy")


def test_a_level_twice() -> None:
    twice = "rooms_watermaze,contributed/dmlab30/rooms_watermaze"
    with pytest.raises(UserError, match=r"^--game: .* got rooms_watermaze more than once"):
        level_names(twice)
