import pytest

from seed_rl.episode_log import EpisodeLog
from seed_rl.human_scores import HumanScore


def add_all(log: EpisodeLog, *episodes: tuple[int, float, int]) -> list[dict[str, float]]:
    """Adds episodes of (environment id, return, length)."""
    return [log.add(*episode) for episode in episodes]


def test_training_and_evaluation_are_told_apart() -> None:
    log = EpisodeLog(num_training_envs=2)
    assert log.headline() is None
    assert add_all(log, (0, 1.0, 10), (2, 8.0, 30), (1, 3.0, 20)) == [
        {"training/return": 1.0, "training/length": 10, "training/mean_return": 1.0},
        {"evaluation/return": 8.0, "evaluation/length": 30, "evaluation/mean_return": 8.0},
        {"training/return": 3.0, "training/length": 20, "training/mean_return": 2.0},
    ]
    assert log.headline() == "return 2.00"


def test_every_nth_episode_of_a_kind_is_told_and_all_count() -> None:
    log = EpisodeLog(num_training_envs=1, episode_frequency=2)
    told = add_all(
        log, (0, 1.0, 1), (1, 0.0, 1), (0, 3.0, 1), (1, 0.0, 1), (0, 5.0, 1), (0, 7.0, 1)
    )
    means = [scalars.get("training/mean_return") for scalars in told]
    assert means == [None, None, 2.0, None, None, 4.0]
    assert [bool(scalars) for scalars in told] == [False, False, True, True, False, True]


def test_the_mean_is_over_the_last_hundred() -> None:
    log = EpisodeLog(num_training_envs=1)
    *_, last = add_all(log, *[(0, 1000.0, 1)] * 50, *[(0, 2.0, 1)] * 100)
    assert last["training/mean_return"] == pytest.approx(2.0)


def test_each_task_has_its_own_returns() -> None:
    log = EpisodeLog(num_training_envs=3, tasks=("A", "B"))
    told = add_all(log, (0, 1.0, 5), (1, 10.0, 6), (2, 3.0, 7))  # environments of A, B, A
    assert [set(scalars) - {"training/return/A", "training/return/B"} for scalars in told[:2]] == [
        {f"training/{name}{end}" for name in ("length", "mean_return") for end in ("", f"/{task}")}
        | {"training/return"}
        for task in ("A", "B")
    ]
    assert told[2]["training/mean_return/A"] == 2.0
    assert told[2]["training/mean_return"] == pytest.approx(14.0 / 3)
    assert log.headline() == "return 4.67"


def test_tasks_of_evaluation_are_counted_anew() -> None:
    log = EpisodeLog(num_training_envs=3, tasks=("A", "B"))
    assert "evaluation/return/A" in log.add(3, 1.0, 1)
    assert "evaluation/return/B" in log.add(4, 1.0, 1)


def test_human_normalised_scores_wait_for_an_episode_of_every_task() -> None:
    scores = {"A": HumanScore(0.0, 10.0), "B": HumanScore(100.0, 200.0), "C": HumanScore(0.0, 1.0)}
    log = EpisodeLog(num_training_envs=2, tasks=("A", "B"), human_scores=scores)
    first = log.add(0, 20.0, 1)
    assert log.headline() == "return 20.00"  # there is something to say before that
    second = log.add(1, 110.0, 1)
    tags = [f"training/human_normalized_{name}" for name in ("mean", "mean_capped", "median")]
    assert not set(tags) & set(first)
    assert [second[tag] for tag in tags] == pytest.approx([105.0, 55.0, 105.0])
    assert log.headline() == "median human-normalised 105.0%"


def test_tasks_without_human_scores_are_left_out_of_the_normalised() -> None:
    log = EpisodeLog(2, tasks=("A", "B"), human_scores={"B": HumanScore(0.0, 10.0)})
    assert log.add(1, 5.0, 1)["training/human_normalized_mean"] == pytest.approx(50.0)


def test_a_single_task_is_told_as_it_is() -> None:
    log = EpisodeLog(1, tasks=("Pong",), human_scores={"Pong": HumanScore(-20.7, 14.6)})
    assert set(log.add(0, 1.0, 1)) == {
        f"training/{name}" for name in ("return", "length", "mean_return")
    }
    assert log.headline() == "return 1.00"


def test_scores_are_told_apart_from_returns() -> None:
    log = EpisodeLog(num_training_envs=2)
    assert log.headline() is None
    log.add(0, 2.0, 10, score=1.0)
    assert log.add(1, 0.5, 20, score=0.0) == {
        "training/length": 20,
        "training/return": 0.5,
        "training/mean_return": 1.25,
        "training/score": 0.0,
        "training/mean_score": 0.5,
    }
    assert log.headline() == "return 1.25, score 0.50"
