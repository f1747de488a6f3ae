"""Machines as Vertex AI's documentation names them."""

from __future__ import annotations

from typing import Any

import pytest

from gcp.hardware import learner_hardware
from seed_rl.errors import UserError


@pytest.mark.parametrize(
    "accelerator, count, spec",
    [
        ("none", None, {"machineType": "n1-standard-16"}),
        (
            "p100",
            4,
            {
                "machineType": "n1-standard-16",
                "acceleratorType": "NVIDIA_TESLA_P100",
                "acceleratorCount": 4,
            },
        ),
        (
            "v100",
            1,
            {
                "machineType": "n1-standard-8",
                "acceleratorType": "NVIDIA_TESLA_V100",
                "acceleratorCount": 1,
            },
        ),
        (
            "t4",
            None,
            {
                "machineType": "n1-standard-16",
                "acceleratorType": "NVIDIA_TESLA_T4",
                "acceleratorCount": 1,
            },
        ),
        (
            "a100",
            8,
            {
                "machineType": "a2-highgpu-8g",
                "acceleratorType": "NVIDIA_TESLA_A100",
                "acceleratorCount": 8,
            },
        ),
        (
            "l4",
            2,
            {
                "machineType": "g2-standard-24",
                "acceleratorType": "NVIDIA_L4",
                "acceleratorCount": 2,
            },
        ),
        (
            "tpu_v3",
            8,
            {"machineType": "cloud-tpu", "acceleratorType": "TPU_V3", "acceleratorCount": 8},
        ),
        ("tpu_v5e", 8, {"machineType": "ct5lp-hightpu-8t", "tpuTopology": "2x4"}),
    ],
)
def test_what_a_job_asks_for(accelerator: str, count: int | None, spec: dict[str, Any]) -> None:
    assert learner_hardware(accelerator, count).machine_spec() == spec


@pytest.mark.parametrize(
    "accelerator, machine, count",
    [
        ("none", "n1-highmem-16", 0),
        ("t4", "n1-highmem-16", 1),
        ("v100", "n1-highmem-16", 2),
        ("a100", "a2-highgpu-2g", 2),
        ("l4", "g2-standard-32", 1),
        ("tpu_v5e", "ct5lp-hightpu-4t", 4),
    ],
)
def test_the_fewest_accelerators_with_enough_memory(
    accelerator: str, machine: str, count: int
) -> None:
    hardware = learner_hardware(accelerator, memory=96.0)
    assert (hardware.machine, hardware.count) == (machine, count)


def test_the_number_follows_a_machine_that_tells_it() -> None:
    assert learner_hardware("a100", machine="a2-highgpu-4g").count == 4


@pytest.mark.parametrize(
    "accelerator, count, machine, message",
    [
        ("t4", 3, "", "--accelerator_count: expected 1 or 2 or 4 of t4, got 3"),
        ("none", 1, "", "--accelerator_count: expected 0 of none, got 1"),
        ("a100", 1, "n1-standard-8", "--learner_machine: .* 1 of a100, got n1-standard-8"),
        ("a100", 1, "a2-highgpu-8g", "--learner_machine: .* 1 of a100, got a2-highgpu-8g"),
        ("v100", 1, "n1-standard-16", "--learner_machine: .* 1 of v100, got n1-standard-16"),
        ("t4", None, "a2-highgpu-1g", "--learner_machine: .* has t4, got a2-highgpu-1g"),
    ],
)
def test_hardware_that_is_not_there(
    accelerator: str, count: int | None, machine: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        learner_hardware(accelerator, count, machine)


def test_too_little_memory_names_the_flag() -> None:
    with pytest.raises(UserError, match=r"--accelerator_count: .*96 GB.* got 1, .*52 GB"):
        learner_hardware("v100", 1, memory=96.0)
