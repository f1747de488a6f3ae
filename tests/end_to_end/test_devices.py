"""Training on two devices and inference on a third, with the machine's CPU as all three."""

import math
from pathlib import Path

import pytest

from tests.end_to_end.processes import assert_refused, main_program, run, run_local, scalars

THREE = ["--training_devices=/cpu:0,/cpu:1", "--inference_devices=/cpu:2"]


@pytest.mark.parametrize("agent", ["vtrace", "r2d2"])
def test_agent_trains_on_two_devices_and_infers_on_a_third(agent: str, tmp_path: Path) -> None:
    short = ["--total_environment_frames=5000", "--log_batch_frequency=1"]
    run_local(tmp_path, "catch", agent, "1", *THREE, *short)
    by_tag = scalars(tmp_path)
    assert by_tag["training/steps"][-1].value > 3
    assert all(math.isfinite(loss.value) for loss in by_tag["loss/total"])
    assert by_tag["gradient/norm"][-1].value > 0


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ([*THREE, "--batch_size=15"], ["--batch_size", "multiple of 2", "15"]),
        (["--training_devices=/gpu:7"], ["--training_devices", "/gpu:7", "/cpu:0"]),
    ],
    ids=["batch that cannot be split", "device that is not there"],
)
def test_wrong_devices_are_refused(flags: list[str], parts: list[str], tmp_path: Path) -> None:
    command = main_program("catch.vtrace_main", f"--logdir={tmp_path}", *flags)
    assert_refused(run(tmp_path / "log", *command), *parts)
