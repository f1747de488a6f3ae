"""Vertex AI's description of a training job: a pool with the learner, a pool of actor machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gcp.hardware import LearnerHardware

_DISK = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200}


@dataclasses.dataclass(frozen=True)
class Job:
    """A training run in the cloud.

    Attributes:
      domain, agent: name the module <domain>.<agent>_main.
      folder: gs://bucket/folder of all that it keeps; a job with the same one goes on.
      repository: of the images: region-docker.pkg.dev/project/repository.
      tag: of the images.
      learner: the learner's machine.
      actor_machine, num_actor_machines: type and number of the actors' machines.
      actors_per_machine, envs_per_actor: processes on each, and environments in each of those.
      spot: whether machines may be taken away at any time, for a lower price.
      flags: of learner and actors.
    """

    domain: str
    agent: str
    folder: str
    repository: str
    tag: str
    learner: LearnerHardware
    actor_machine: str
    num_actor_machines: int
    actors_per_machine: int
    envs_per_actor: int
    spot: bool
    flags: Sequence[str]

    @property
    def name(self) -> str:
        return self.folder.rpartition("/")[2]

    @property
    def credentials(self) -> str:
        """Folder of the token and the certificate."""
        return f"{self.folder}/credentials"

    def spec(self) -> dict[str, Any]:
        """A CustomJobSpec, as `gcloud ai custom-jobs create --config` takes it."""
        return self._spec([])

    def tuning_spec(self, study: Mapping[str, Any]) -> dict[str, Any]:
        """A HyperparameterTuningJobSpec, as `gcloud ai hp-tuning-jobs create --config` takes it.

        Args:
          study: a StudySpec with one metric, the tag of a scalar.
        """
        metric = study["metrics"][0]["metricId"]
        trial = self._spec(["--tuning", f"--tuning_metric={metric}"])
        return {"studySpec": dict(study), "trialJobSpec": trial}

    def _spec(self, options: Sequence[str]) -> dict[str, Any]:
        arguments = [
            self.domain,
            self.agent,
            str(self.actors_per_machine),
            str(self.envs_per_actor),
            f"--logdir={self.folder}",
            f"--credentials={self.credentials}",
            *options,
            *self.flags,
        ]
        actor_spec = {"machineType": self.actor_machine}
        return {
            "workerPoolSpecs": [
                self._pool(self.learner.flavour, self.learner.machine_spec(), 1, arguments),
                self._pool("actor", actor_spec, self.num_actor_machines, arguments),
            ],
            "scheduling": {"strategy": "SPOT" if self.spot else "STANDARD"},
            "baseOutputDirectory": {"outputUriPrefix": self.folder},
        }

    def _pool(
        self, flavour: str, machine: Mapping[str, Any], count: int, arguments: Sequence[str]
    ) -> dict[str, Any]:
        return {
            "machineSpec": dict(machine),
            "replicaCount": count,
            "diskSpec": dict(_DISK),
            "containerSpec": {
                "imageUri": f"{self.repository}/{self.domain}-{flavour}:{self.tag}",
                "args": list(arguments),
            },
        }
