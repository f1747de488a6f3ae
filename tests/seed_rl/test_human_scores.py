import pytest

from seed_rl.human_scores import HumanScore, summarize


@pytest.mark.parametrize(("mean_return", "percent"), [(-20.0, 0.0), (-15.0, 50.0), (0.0, 200.0)])
def test_random_play_is_0_and_a_human_is_100(mean_return: float, percent: float) -> None:
    assert HumanScore(random=-20.0, human=-10.0).normalize(mean_return) == pytest.approx(percent)


def test_capped_scores_count_no_task_as_more_than_100() -> None:
    human = HumanScore(random=0.0, human=10.0)
    scores = summarize({"a": 50.0, "b": 1.0, "c": 12.0}, dict.fromkeys("abcd", human))
    # 500%, 10% and 120%; capped 100%, 10% and 100%.
    assert scores == pytest.approx(
        {"mean": 210.0, "median": 120.0, "mean_capped": 70.0, "median_capped": 100.0}
    )


def test_the_median_of_an_even_number_of_tasks_lies_between_the_two_in_the_middle() -> None:
    human = HumanScore(random=0.0, human=10.0)
    scores = summarize({"a": 20.0, "b": 4.0}, dict.fromkeys("ab", human))
    assert (scores["median"], scores["median_capped"]) == pytest.approx((120.0, 70.0))
