"""Machines and accelerators that Vertex AI's custom training has, under short names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from seed_rl.errors import UserError

# Gigabytes of memory for each virtual processor.
_MEMORY_PER_VCPU = {"n1-standard": 3.75, "n1-highmem": 6.5, "n1-highcpu": 0.9, "g2-standard": 4.0}
_MEMORY = {  # of machines that come whole
    "a2-highgpu-1g": 85.0,
    "a2-highgpu-2g": 170.0,
    "a2-highgpu-4g": 340.0,
    "a2-highgpu-8g": 680.0,
    "ct5lp-hightpu-1t": 48.0,
    "ct5lp-hightpu-4t": 192.0,
    "ct5lp-hightpu-8t": 384.0,
    "cloud-tpu": 340.0,
}


def _n1(most_vcpus: int) -> tuple[str, ...]:
    """Machine types of the family n1 up to a size, those first that fit a learner best."""
    sizes = [size for size in (16, 32, 8, 64, 96, 4) if size <= most_vcpus]
    kinds = ("n1-standard", "n1-highmem", "n1-highcpu")
    return tuple(f"{kind}-{size}" for size in sizes for kind in kinds)


def _g2(*sizes: int) -> tuple[str, ...]:
    return tuple(f"g2-standard-{size}" for size in sizes)


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """One kind of accelerator.

    Attributes:
      flavour: of the learner's image: cpu, gpu or tpu.
      machines: by the number of accelerators, the machine types that have or take so many; the
        first with enough memory is the default.
      vertex_type: Vertex AI's name, where the machine type does not tell it.
      topologies: of TPUs that are told by their arrangement, by their number.
    """

    flavour: str
    machines: Mapping[int, Sequence[str]]
    vertex_type: str = ""
    topologies: Mapping[int, str] = dataclasses.field(default_factory=dict)


ACCELERATORS = {
    "none": Accelerator("cpu", {0: _n1(96)}),
    "t4": Accelerator("gpu", {1: _n1(32), 2: _n1(32), 4: _n1(96)}, "NVIDIA_TESLA_T4"),
    "p100": Accelerator("gpu", {1: _n1(16), 2: _n1(32), 4: _n1(64)}, "NVIDIA_TESLA_P100"),
    "v100": Accelerator(
        "gpu", {1: _n1(8), 2: _n1(16), 4: _n1(32), 8: _n1(96)}, "NVIDIA_TESLA_V100"
    ),
    "l4": Accelerator(
        "gpu", {1: _g2(16, 32, 12, 8, 4), 2: _g2(24), 4: _g2(48), 8: _g2(96)}, "NVIDIA_L4"
    ),
    "a100": Accelerator(
        "gpu", {n: (f"a2-highgpu-{n}g",) for n in (1, 2, 4, 8)}, "NVIDIA_TESLA_A100"
    ),
    "tpu_v3": Accelerator("tpu", {8: ("cloud-tpu",)}, "TPU_V3"),
    "tpu_v5e": Accelerator(
        "tpu",
        {n: (f"ct5lp-hightpu-{n}t",) for n in (1, 4, 8)},
        topologies={1: "1x1", 4: "2x2", 8: "2x4"},
    ),
}


@dataclasses.dataclass(frozen=True)
class LearnerHardware:
    """The learner's machine.

    Attributes:
      accelerator: its kind, a key of ACCELERATORS.
      count: how many; TPUs are counted in what Vertex AI counts: cores of v3, chips of v5e.
      machine: Vertex AI's machine type.
    """

    accelerator: str
    count: int
    machine: str

    @property
    def flavour(self) -> str:
        return ACCELERATORS[self.accelerator].flavour

    def machine_spec(self) -> dict[str, Any]:
        """As a job's workerPoolSpecs have it."""
        kind = ACCELERATORS[self.accelerator]
        spec: dict[str, Any] = {"machineType": self.machine}
        if kind.vertex_type:
            spec |= {"acceleratorType": kind.vertex_type, "acceleratorCount": self.count}
        if kind.topologies:
            spec |= {"tpuTopology": kind.topologies[self.count]}
        return spec


def learner_hardware(
    accelerator: str, count: int | None = None, machine: str = "", memory: float = 0.0
) -> LearnerHardware:
    """The learner's machine as the user has asked for it.

    Args:
      accelerator: a key of ACCELERATORS.
      count: how many; None: the fewest with which there is such a machine.
      machine: its type; empty: one for the accelerator.
      memory: gigabytes that it must have if the type is empty.

    Raises:
      UserError: there is no such machine.
    """
    machines = ACCELERATORS[accelerator].machines
    if count is not None and count not in machines:
        numbers = " or ".join(str(number) for number in machines)
        raise UserError(f"--accelerator_count: expected {numbers} of {accelerator}, got {count}.")
    for number in machines if count is None else (count,):
        for each in machines[number]:
            if each == machine or (not machine and _memory(each) >= memory):
                return LearnerHardware(accelerator, number, each)
    wanted = f"{accelerator}" if count is None else f"{count} of {accelerator}"
    if machine:
        raise UserError(f"--learner_machine: expected one that has {wanted}, got {machine}.")
    raise UserError(
        f"--accelerator_count: expected {accelerator} on a machine with {memory:g} GB of memory, "
        f"which the settings of --flagfile take, got {count}, with at most "
        f"{max(_memory(each) for each in machines[count or 0]):g} GB."
    )


def vcpus(machine: str) -> int:
    """Virtual processors of a machine type like n1-standard-32.

    Raises:
      UserError: its name does not tell.
    """
    match = re.fullmatch(r"[a-z0-9]+-[a-z]+-([1-9][0-9]{0,3})", machine)
    if match is None:
        raise UserError(f"--actor_machine: expected a type like n1-standard-32, got {machine}.")
    return int(match[1])


def _memory(machine: str) -> float:
    """Gigabytes of a machine type in ACCELERATORS."""
    if machine in _MEMORY:
        return _MEMORY[machine]
    family, _, size = machine.rpartition("-")
    return _MEMORY_PER_VCPU[family] * int(size)
