"""Names of DeepMind Lab's levels."""

from __future__ import annotations

from seed_rl.task_names import split_names, unknown_name

_FOLDER = "contributed/dmlab30/"

# Trained on in the first level, scored on the second, whose objects training does not show.
TEST_TWINS = {
    "rooms_collect_good_objects_train": "rooms_collect_good_objects_test",
    "rooms_exploit_deferred_effects_train": "rooms_exploit_deferred_effects_test",
}

# The benchmark of Espeholt et al. (arXiv 1802.01561), as it is trained on.
DMLAB_30 = (
    "rooms_collect_good_objects_train", "rooms_exploit_deferred_effects_train",
    "rooms_select_nonmatching_object", "rooms_watermaze", "rooms_keys_doors_puzzle",
    "language_select_described_object", "language_select_located_object",
    "language_execute_random_task", "language_answer_quantitative_question",
    "lasertag_one_opponent_small", "lasertag_three_opponents_small", "lasertag_one_opponent_large",
    "lasertag_three_opponents_large", "natlab_fixed_large_map", "natlab_varying_map_regrowth",
    "natlab_varying_map_randomized", "skymaze_irreversible_path_hard",
    "skymaze_irreversible_path_varied", "psychlab_arbitrary_visuomotor_mapping",
    "psychlab_continuous_recognition", "psychlab_sequential_comparison", "psychlab_visual_search",
    "explore_object_locations_small", "explore_object_locations_large",
    "explore_obstructed_goals_small", "explore_obstructed_goals_large",
    "explore_goal_locations_small", "explore_goal_locations_large", "explore_object_rewards_few",
    "explore_object_rewards_many",
)  # fmt: skip

_SHORT_NAMES = (*DMLAB_30, *TEST_TWINS.values())


def level_names(levels: str) -> tuple[str, ...]:
    """Names from "rooms_watermaze", "rooms_watermaze,tests/empty_room_test" or "dmlab30".

    Levels of DMLab-30 come out with their short names, all others with the path that they came
    with, which only the engine can check.

    Raises:
      UserError: no level has that short name, or one is there twice.
    """
    return split_names(levels, _name, {"dmlab30": DMLAB_30})


def level_path(name: str) -> str:
    """The engine's name: "contributed/dmlab30/rooms_watermaze" for "rooms_watermaze"."""
    return name if "/" in name else _FOLDER + name


def _name(level: str) -> str:
    name = level.removeprefix(_FOLDER)
    if name in _SHORT_NAMES:
        return name
    if "/" in level:
        return level
    expected = "a name like rooms_watermaze, a path with a slash in it, or dmlab30"
    raise unknown_name(level, "level of DMLab-30", _SHORT_NAMES, expected)
