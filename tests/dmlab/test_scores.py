import pytest

from dmlab.env import DOMAIN, DMLabSettings
from dmlab.levels import DMLAB_30, TEST_TWINS
from dmlab.scores import HUMAN_SCORES
from seed_rl.human_scores import HumanScore


def test_every_level_of_the_benchmark_has_scores() -> None:
    assert tuple(HUMAN_SCORES) == (*DMLAB_30, *TEST_TWINS.values())
    assert tuple(DOMAIN.tasks(DMLabSettings(game="dmlab30"))) == DMLAB_30


def test_a_human_beats_random_play() -> None:
    for level, scores in HUMAN_SCORES.items():
        assert scores.human > scores.random, level


def test_some_scores() -> None:
    assert HUMAN_SCORES["rooms_collect_good_objects_train"] == HumanScore(random=0.073, human=10.0)
    assert HUMAN_SCORES["rooms_exploit_deferred_effects_test"] == HumanScore(8.501, 85.65)
    assert HUMAN_SCORES["language_execute_random_task"] == HumanScore(random=-5.913, human=254.05)
    watermaze = HUMAN_SCORES["rooms_watermaze"]  # 4.065 and 54
    assert watermaze.normalize(4.065 + 49.935 / 2) == pytest.approx(50.0)
