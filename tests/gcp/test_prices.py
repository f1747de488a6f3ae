"""What jobs cost, by hand."""

from __future__ import annotations

import pytest

from gcp import prices
from gcp.hardware import ACCELERATORS, learner_hardware, vcpus
from gcp.prices import Estimate
from seed_rl.errors import UserError


def test_a_learner_with_accelerators_and_its_actors() -> None:
    learner = learner_hardware("v100", 2, "")
    # 16 processors and 2 accelerators; three times 32 processors.
    assert learner.machine == "n1-standard-16"
    expected = 16 * 0.0546 + 2 * 2.852 + 3 * 32 * 0.0408
    assert prices.dollars_per_hour(learner, "n1-highcpu-32", 3) == pytest.approx(expected)


def test_what_is_in_a_machines_price_is_not_counted_twice() -> None:
    actors = 16 * 0.0546
    for accelerator, count, price in [
        ("a100", 4, 17.701),
        ("l4", 1, 1.319),
        ("tpu_v5e", 8, 11.04),
        ("tpu_v3", 8, 8 * 1.15),
        ("none", None, 16 * 0.0546),
    ]:
        learner = learner_hardware(accelerator, count, "")
        found = prices.dollars_per_hour(learner, "n1-standard-16", 1)
        assert found == pytest.approx(price + actors), accelerator


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_every_learner_has_a_price(accelerator: str) -> None:
    for count, machines in ACCELERATORS[accelerator].machines.items():
        for machine in machines:
            learner = learner_hardware(accelerator, count, machine)
            assert prices.dollars_per_hour(learner, "n1-standard-4", 1) > 0.3


def test_a_machine_without_a_price_names_the_flag() -> None:
    learner = learner_hardware("none", None, "")
    with pytest.raises(UserError, match=r"--price_per_hour: .* none of h3-standard-88"):
        prices.dollars_per_hour(learner, "h3-standard-88", 1)


def test_frames_cost_what_the_hours_do() -> None:
    estimate = Estimate(dollars_per_hour=36.0, frames_per_second=100_000.0)
    assert estimate.hours_per_billion_frames == pytest.approx(10_000 / 3_600)
    assert estimate.dollars_per_billion_frames == pytest.approx(100.0)


def test_frames_come_from_the_actors_processors() -> None:
    assert prices.frames_per_second("football", "n1-standard-32", 4) == 80 * 32 * 4
    assert vcpus("e2-highcpu-8") == 8
    with pytest.raises(UserError, match=r"--actor_machine: .* got a2-highgpu-1g"):
        vcpus("a2-highgpu-1g")
