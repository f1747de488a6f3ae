"""What a job costs, roughly, for a user to decide before it starts.

The table, written on DATE from memory and not checked against the price list, has Vertex AI's
custom training on demand in us-central1, in US dollars per hour. Other regions, spot machines and
contracts have other prices: --price_per_hour takes the user's own.
"""

from __future__ import annotations

import dataclasses
import re

from gcp.hardware import LearnerHardware, vcpus
from seed_rl.errors import UserError

DATE = "2026-12-07"

PER_VCPU = {  # with its share of memory
    "n1-standard": 0.0546,
    "n1-highcpu": 0.0408,
    "n1-highmem": 0.0680,
    "e2-standard": 0.0385,
    "e2-highcpu": 0.0284,
    "n2-standard": 0.0559,
    "c2-standard": 0.0600,
}
PER_MACHINE = {  # accelerators included
    "a2-highgpu-1g": 4.425,
    "a2-highgpu-2g": 8.850,
    "a2-highgpu-4g": 17.701,
    "a2-highgpu-8g": 35.402,
    "g2-standard-4": 0.813,
    "g2-standard-8": 0.982,
    "g2-standard-12": 1.151,
    "g2-standard-16": 1.319,
    "g2-standard-32": 1.995,
    "g2-standard-24": 2.300,
    "g2-standard-48": 4.601,
    "g2-standard-96": 9.202,
    "ct5lp-hightpu-1t": 1.380,
    "ct5lp-hightpu-4t": 5.520,
    "ct5lp-hightpu-8t": 11.040,
}
PER_ACCELERATOR = {"t4": 0.4025, "p100": 1.679, "v100": 2.852, "tpu_v3": 1.150}  # v3: per core

# Frames that an actor's vCPU plays per second: what the engines do on a core of a server, halved,
# since a vCPU is one of a core's two threads.
FRAMES_PER_VCPU = {"atari": 4_500.0, "football": 80.0, "dmlab": 2_000.0}


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a job costs.

    Attributes:
      dollars_per_hour: of all its machines.
      frames_per_second: of all its environments.
    """

    dollars_per_hour: float
    frames_per_second: float

    @property
    def dollars_per_billion_frames(self) -> float:
        return self.dollars_per_hour * 1e9 / self.frames_per_second / 3600

    @property
    def hours_per_billion_frames(self) -> float:
        return 1e9 / self.frames_per_second / 3600


def dollars_per_hour(
    learner: LearnerHardware, actor_machine: str, num_actor_machines: int
) -> float:
    """All machines of a job.

    Raises:
      UserError: one of them is not in the table.
    """
    accelerators = 0.0
    if learner.machine not in PER_MACHINE:
        accelerators = PER_ACCELERATOR.get(learner.accelerator, 0.0) * learner.count
    actors = _machine(actor_machine) * num_actor_machines
    return _machine(learner.machine) + accelerators + actors


def frames_per_second(domain: str, actor_machine: str, num_actor_machines: int) -> float:
    """The most that the actors' engines can play; a learner may take less."""
    return FRAMES_PER_VCPU[domain] * vcpus(actor_machine) * num_actor_machines


def _machine(machine: str) -> float:
    if machine == "cloud-tpu":  # a TPU's host is in its price
        return 0.0
    if machine in PER_MACHINE:
        return PER_MACHINE[machine]
    match = re.fullmatch(r"([a-z0-9]+-[a-z]+)-([0-9]+)", machine)
    if match is None or match[1] not in PER_VCPU:
        raise UserError(
            f"--price_per_hour: expected the price of all machines, since the table of {DATE} has "
            f"none of {machine}, got none."
        )
    return PER_VCPU[match[1]] * int(match[2])
