"""The actor: steps environments with the actions that the learner answers.

It holds no network, imports no TensorFlow, and gets the environments' settings from the learner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from absl import logging

from seed_rl import multitask
from seed_rl.domain import Domain
from seed_rl.environments import VectorEnvironment
from seed_rl.errors import UserError
from seed_rl.grpc import errors as grpc_errors
from seed_rl.grpc.client import Client
from seed_rl.grpc.security import PLAIN, Security
from seed_rl.settings import setting

# A learner that is shutting down may still accept connections; don't hammer it.
_RECONNECT_PAUSE_SECS = 1.0


@dataclasses.dataclass(frozen=True)
class ActorSettings:
    """Which of all environments this process runs."""

    task: int = setting(
        0, "Number of this actor among all actors, from 0.", minimum=0, maximum=1_000_000
    )
    env_batch_size: int = setting(
        8, "Environments in each actor process.", minimum=1, maximum=1_000
    )
    connection_timeout_secs: float = setting(
        600.0,
        "Seconds that an actor waits for the learner, at the start and when it is away.",
        minimum=0.0,
        maximum=1e7,
    )

    @property
    def env_ids(self) -> np.ndarray:
        """This actor's share of the environments 0 to num_envs - 1: int32 [env_batch_size]."""
        first = self.task * self.env_batch_size
        return np.arange(first, first + self.env_batch_size, dtype=np.int32)


def run(
    server_address: str, settings: ActorSettings, domain: Domain, security: Security = PLAIN
) -> None:
    """Interacts with the learner until training has ended.

    When the learner goes away, waits for it, and then starts new episodes under new run ids: the
    last call may or may not have been processed, so it cannot be repeated.

    Args:
      server_address: "unix:/path" or "host:port". The learner there has the settings
        {"environment": fields of domain.settings, "num_training_envs": int, "num_eval_envs": int,
        "seed": int} and a method
        inference(env_ids int32 [N], run_ids int64 [N], TimeStep) -> actions int32 [N].
      settings: of this actor.
      domain: what the environments are.
      security: as the learner's.

    Raises:
      UserError: no learner in time, or one that expects another token or other actors.
    """
    timeout = settings.connection_timeout_secs
    logging.info("Waiting up to %g s for the learner at %s.", timeout, server_address)
    with contextlib.closing(_Environments(settings, domain)) as environments:
        while True:
            try:
                with Client(server_address, timeout, security) as client:
                    logging.info("Connected to the learner at %s.", server_address)
                    _interact(client, settings.env_ids, environments.built_for(client.settings))
            except grpc_errors.UnavailableError as error:
                logging.warning("Lost the learner; waiting up to %g s for it: %s", timeout, error)
                time.sleep(_RECONNECT_PAUSE_SECS)
            except grpc_errors.ServiceEndedError:
                logging.info("Training has ended.")
                return
            except grpc_errors.ConnectionTimeoutError as error:
                raise UserError(f"--connection_timeout_secs={timeout:g}: {error}.") from error
            except grpc_errors.UnauthenticatedError as error:
                raise UserError(
                    f"--auth_token_file: the learner at {server_address} {error}."
                ) from error
            except (grpc_errors.InvalidArgumentError, grpc_errors.NotFoundError) as error:
                raise UserError(
                    f"A call to the learner at {server_address} failed: {error}."
                ) from error


def environment_seed(seed: int, env_id: int) -> int:
    """The seed, below 2^31, of an environment in the run with a --seed: no two runs share one."""
    return int(np.random.SeedSequence([seed, env_id]).generate_state(1)[0] >> 1)


def exit_on_signals(clean_up: Callable[[], None] = lambda: None) -> None:
    """Makes SIGTERM and SIGINT end this process, with exit code 128 + n: it has nothing to save.

    At once, not by an exception: raised in the middle of gRPC's Python code, it leaves a connection
    whose end the interpreter's exit waits for forever.

    Args:
      clean_up: called before, between any two instructions of the main thread, and a second time
        if a second signal comes meanwhile.
    """

    def end(number: int, frame: object) -> None:
        del frame
        try:
            clean_up()
        finally:
            os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _interact(client: Client, env_ids: np.ndarray, environments: VectorEnvironment) -> NoReturn:
    """Steps the environments until a call fails."""
    # Fresh ids tell the learner to drop what it keeps of these environments' last episodes.
    run_ids = np.random.default_rng().integers(1, np.iinfo(np.int64).max, len(env_ids))
    time_step = environments.reset()
    while True:
        time_step = environments.step(client.inference(env_ids, run_ids, time_step))


class _Environments:
    """The actor's environments; outlive a learner, as long as the next one wants the same."""

    def __init__(self, settings: ActorSettings, domain: Domain):
        self._settings = settings
        self._domain = domain
        self._learner_settings: dict[str, Any] = {}
        self._environments: VectorEnvironment | None = None

    def built_for(self, learner_settings: dict[str, Any]) -> VectorEnvironment:
        """Environments as the learner's settings say, each with a seed of its own.

        Raises:
          UserError: the learner has no place for this actor.
        """
        if self._environments is None or learner_settings != self._learner_settings:
            self.close()
            num_training_envs = learner_settings["num_training_envs"]
            self._check_place(num_training_envs + learner_settings["num_eval_envs"])
            seed = learner_settings["seed"]
            env_ids = self._settings.env_ids.tolist()
            self._environments = multitask.make_environments(
                self._domain,
                self._domain_settings(learner_settings["environment"]),
                {env_id: environment_seed(seed, env_id) for env_id in env_ids},
                num_training_envs,
            )
            self._learner_settings = learner_settings
        return self._environments

    def close(self) -> None:
        if self._environments is not None:
            self._environments.close()
            self._environments = None

    def _domain_settings(self, values: dict[str, Any]) -> Any:
        ours = {field.name for field in dataclasses.fields(self._domain.settings)}
        if values.keys() != ours:
            raise UserError(
                f"--server_address: expected a learner for environments with the settings "
                f"{', '.join(sorted(ours))}, got one with {', '.join(sorted(values))}: start both "
                "from the same domain and the same version of the code."
            )
        return self._domain.settings(**values)

    def _check_place(self, num_envs: int) -> None:
        first, last = self._settings.env_ids[[0, -1]]
        if last >= num_envs:
            raise UserError(
                f"--task={self._settings.task} with --env_batch_size="
                f"{self._settings.env_batch_size} takes environments {first} to {last}, "
                f"expected less than the learner's --num_envs={num_envs}."
            )
