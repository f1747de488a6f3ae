"""Machines and accelerators that Vertex AI's custom training has, under short names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from seed_rl.errors import UserError


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """One kind of accelerator.

    Attributes:
      flavour: of the learner's image: cpu, gpu or tpu.
      machines: by the number of accelerators, the machine type that is taken by default.
      machine_pattern: what machine types it can be attached to, as a regular expression.
      vertex_type: Vertex AI's name, where the machine type does not tell it.
      topologies: of TPUs that are told by their arrangement, by their number.
    """

    flavour: str
    machines: Mapping[int, str]
    machine_pattern: str
    vertex_type: str = ""
    topologies: Mapping[int, str] = dataclasses.field(default_factory=dict)


ACCELERATORS = {
    "none": Accelerator("cpu", {0: "n1-standard-16"}, r"[a-z0-9]+-(standard|highmem|highcpu)-\d+"),
    "t4": Accelerator(
        "gpu",
        {1: "n1-standard-16", 2: "n1-standard-32", 4: "n1-standard-64"},
        r"n1-.*",
        "NVIDIA_TESLA_T4",
    ),
    "p100": Accelerator(
        "gpu",
        {1: "n1-standard-16", 2: "n1-standard-32", 4: "n1-standard-64"},
        r"n1-.*",
        "NVIDIA_TESLA_P100",
    ),
    "v100": Accelerator(
        "gpu",
        {1: "n1-standard-8", 2: "n1-standard-16", 4: "n1-standard-32", 8: "n1-standard-64"},
        r"n1-.*",
        "NVIDIA_TESLA_V100",
    ),
    "l4": Accelerator(
        "gpu",
        {1: "g2-standard-16", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"},
        r"g2-.*",
        "NVIDIA_L4",
    ),
    "a100": Accelerator(
        "gpu",
        {n: f"a2-highgpu-{n}g" for n in (1, 2, 4, 8)},
        r"a2-highgpu-.*",
        "NVIDIA_TESLA_A100",
    ),
    "tpu_v3": Accelerator("tpu", {8: "cloud-tpu"}, r"cloud-tpu", "TPU_V3"),
    "tpu_v5e": Accelerator(
        "tpu",
        {n: f"ct5lp-hightpu-{n}t" for n in (1, 4, 8)},
        r"ct5lp-hightpu-.*",
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


def learner_hardware(accelerator: str, count: int | None, machine: str) -> LearnerHardware:
    """The learner's machine as the user has asked for it.

    Args:
      accelerator: a key of ACCELERATORS.
      count: how many; None: the least.
      machine: its type; empty: that of the accelerator.

    Raises:
      UserError: there is no such machine.
    """
    kind = ACCELERATORS[accelerator]
    count = min(kind.machines) if count is None else count
    if count not in kind.machines:
        raise UserError(
            f"--accelerator_count: expected {_listed(kind.machines)} of {accelerator}, got {count}."
        )
    if machine and not re.fullmatch(kind.machine_pattern, machine):
        raise UserError(
            f"--learner_machine: expected a type like {kind.machines[count]} for "
            f"--accelerator={accelerator}, got {machine}."
        )
    return LearnerHardware(accelerator, count, machine or kind.machines[count])


def vcpus(machine: str) -> int:
    """Virtual processors of a machine type like n1-standard-32.

    Raises:
      UserError: its name does not tell.
    """
    match = re.fullmatch(r"[a-z0-9]+-[a-z]+-(\d+)", machine)
    if match is None:
        raise UserError(f"--actor_machine: expected a type like n1-standard-32, got {machine}.")
    return int(match[1])


def _listed(counts: Mapping[int, str]) -> str:
    return " or ".join(str(count) for count in counts)
