"""Which part of a cluster this machine is, as the cluster's environment variables have it.

Three ways to say it, the first that is there counts:

- SEED_RL_ROLE ("learner" or "actor") and SEED_RL_LEARNER_ADDRESS ("host:port"), on any cluster;
- CLUSTER_SPEC, which Vertex AI sets: workerpool0 is the learner, all other pools are actors;
- TF_CONFIG, as TensorFlow's clusters have it: chief (or master) is the learner, all others are
  actors.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping

from seed_rl.errors import UserError
from seed_rl.grpc import addresses

ROLES = ("learner", "actor")

_LEARNER_POOLS = ("workerpool0", "chief", "master")


@dataclasses.dataclass(frozen=True)
class Place:
    """This machine's part.

    Attributes:
      role: "learner" or "actor".
      learner_address: "host:port" that actors connect to.
      actor_machine: number of this machine among those of actors, from 0; None where the variables
        don't tell.
      num_actor_machines: None where the variables don't tell.
      trial: of a hyper-parameter tuning job; else empty.
    """

    role: str
    learner_address: str
    actor_machine: int | None = None
    num_actor_machines: int | None = None
    trial: str = ""

    @property
    def listening_address(self) -> str:
        """Where the learner listens: on all networks, unless only this machine is meant."""
        if addresses.is_local(self.learner_address):
            return self.learner_address
        return f"[::]:{self.learner_address.rpartition(':')[2]}"


def find(environment: Mapping[str, str]) -> Place:
    """Reads the environment variables.

    Raises:
      UserError: there are none of them, or they can't be used.
    """
    if "SEED_RL_ROLE" in environment:
        return _from_role(environment)
    for variable in "CLUSTER_SPEC", "TF_CONFIG":
        if variable in environment:
            # Vertex AI sets it, too, in some replicas of a tuning job.
            trial = environment.get("CLOUD_ML_TRIAL_ID", "")
            return _from_specification(variable, environment[variable], trial)
    raise UserError(
        "SEED_RL_ROLE: expected learner or actor, with SEED_RL_LEARNER_ADDRESS beside it, or "
        "CLUSTER_SPEC or TF_CONFIG in the environment, got none of them."
    )


def _from_role(environment: Mapping[str, str]) -> Place:
    role = environment["SEED_RL_ROLE"]
    if role not in ROLES:
        raise UserError(f"SEED_RL_ROLE: expected {' or '.join(ROLES)}, got '{role}'.")
    address = _checked("SEED_RL_LEARNER_ADDRESS", environment.get("SEED_RL_LEARNER_ADDRESS", ""))
    machine = environment.get("JOB_COMPLETION_INDEX")  # of an indexed Job of Kubernetes
    if machine is not None and not re.fullmatch("[0-9]{1,5}", machine):
        raise UserError(f"JOB_COMPLETION_INDEX: expected a number, got '{machine}'.")
    return Place(role, address, None if machine is None else int(machine))


def _from_specification(variable: str, text: str, trial: str) -> Place:
    try:
        specification = json.loads(text)
        pools, task = specification["cluster"], specification["task"]
        place = _from_pools(variable, pools, (task["type"], int(task["index"])))
        return dataclasses.replace(place, trial=str(task.get("trial") or trial))
    except (
        ArithmeticError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{variable}: expected JSON with a 'cluster' of pools of addresses and this machine's "
            f"'task' with type and index, got {text!r}."
        ) from error


def _from_pools(variable: str, pools: Mapping[str, list[str]], task: tuple[str, int]) -> Place:
    learner_pool = next((name for name in _LEARNER_POOLS if pools.get(name)), None)
    if learner_pool is None:
        raise UserError(
            f"{variable}: expected one of the pools {', '.join(_LEARNER_POOLS)} for the learner, "
            f"got {', '.join(pools) or 'none'}."
        )
    # By name, as all machines must count them alike.
    machines = [
        (name, index)
        for name in sorted(pools)
        if name != learner_pool
        for index in range(len(pools[name]))
    ]
    address = _checked(variable, pools[learner_pool][0])
    if task == (learner_pool, 0):
        return Place("learner", address, None, len(machines))
    if task not in machines:
        raise UserError(f"{variable}: expected this machine's task in the cluster, got {task}.")
    return Place("actor", address, machines.index(task), len(machines))


def _checked(variable: str, address: str) -> str:
    try:
        addresses.check(address)
    except ValueError as error:
        raise UserError(f"{variable}: {error}") from error
    return address
