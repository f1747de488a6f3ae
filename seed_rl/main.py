"""The command line of an experiment: flags, and the two roles of a process, learner and actor."""

from __future__ import annotations

import dataclasses
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from absl import app, flags, logging

from seed_rl import actor, scratch, security
from seed_rl import settings as settings_lib
from seed_rl.domain import Domain
from seed_rl.errors import CRASH_CODE, UserError, exit_code
from seed_rl.learner_settings import DeviceSettings, LearnerSettings, OptimizerSettings
from seed_rl.replay import ReplaySettings
from seed_rl.security import SecuritySettings
from seed_rl.settings import setting
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.algorithm import Algorithm
    from seed_rl.learner import LearnerConfig

flags.disclaim_key_flags()

S = TypeVar("S")


@dataclasses.dataclass(frozen=True)
class RunSettings:
    run_mode: str = setting("learner", "Role of this process.", choices=("learner", "actor"))
    server_address: str = setting(
        "unix:/tmp/seed_rl.sock", "Where the learner serves: unix:/path or host:port."
    )


class Settings:
    """The parsed flags: settings[R2D2Settings] is that dataclass as the command line fills it."""

    def __getitem__(self, kind: type[S]) -> S:
        return settings_lib.from_flags(kind)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """An agent on a domain.

    Attributes:
      domain: the environments.
      settings: dataclasses of the agent's and the networks' settings.
      create_algorithm: makes the algorithm from all settings and the environments' spec. Called on
        the learner only, and the only place to import TensorFlow: actors do without.
      defaults: this experiment's defaults, by flag.
    """

    domain: Domain
    settings: tuple[type, ...]
    create_algorithm: Callable[[Settings, EnvironmentSpec], Algorithm]
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def run(experiment: Experiment) -> None:
    """Defines the flags, parses the command line, and runs the role that --run_mode names."""
    define_flags(experiment)
    try:
        sys.exit(
            exit_code(lambda: app.run(lambda argv: _main(experiment, argv), flags_parser=_parse))
        )
    except Exception:
        traceback.print_exc()
        sys.exit(CRASH_CODE)


def _parse(argv: list[str]) -> list[str]:
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        raise UserError(str(error)) from error


def define_flags(experiment: Experiment) -> None:
    """Defines all flags of the experiment's learner and actors, with its defaults."""
    shared = (
        RunSettings,
        SecuritySettings,
        actor.ActorSettings,
        LearnerSettings,
        OptimizerSettings,
        DeviceSettings,
    )
    kinds = (*shared, experiment.domain.settings, *experiment.settings)
    known = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    if unknown := experiment.defaults.keys() - known:
        raise ValueError(f"defaults: expected names of flags, got {', '.join(sorted(unknown))}.")
    for kind in kinds:
        settings_lib.define_flags(kind, experiment.defaults)


def _main(experiment: Experiment, argv: list[str]) -> None:
    logging.set_verbosity(logging.INFO)
    settings = Settings()
    if len(argv) > 1:
        raise UserError(f"Expected flags only, got {argv[1]!r} behind or between them.")
    security.check_address(settings[RunSettings].server_address, settings[SecuritySettings])
    if settings[RunSettings].run_mode == "actor":
        _run_actor(experiment, settings)
    else:
        _run_learner(experiment, settings)


def learner_config(experiment: Experiment, settings: Settings) -> LearnerConfig:
    """What the learner is made from, as the command line has it. Imports TensorFlow."""
    from seed_rl import learner

    environment: Any = settings[experiment.domain.settings]
    spec = experiment.domain.spec(environment)
    tasks = tuple(experiment.domain.tasks(environment))
    learner_settings = settings[LearnerSettings]
    if learner_settings.num_training_envs < len(tasks):
        raise UserError(
            f"--num_envs: expected an environment for each of the {len(tasks)} tasks (and those of "
            f"--num_eval_envs), got {learner_settings.num_envs}."
        )
    if 0 < learner_settings.num_eval_envs < len(tasks):
        raise UserError(
            "--num_eval_envs: expected 0 or an environment for each of the "
            f"{len(tasks)} tasks, got {learner_settings.num_eval_envs}."
        )
    has_replay = ReplaySettings in experiment.settings
    return learner.LearnerConfig(
        spec=spec,
        environment=dataclasses.asdict(environment),
        create_algorithm=lambda: experiment.create_algorithm(settings, spec),
        server_address=settings[RunSettings].server_address,
        env_batch_size=settings[actor.ActorSettings].env_batch_size,
        settings=learner_settings,
        optimizer=settings[OptimizerSettings],
        devices=settings[DeviceSettings],
        replay=settings[ReplaySettings] if has_replay else None,
        tasks=tasks,
        human_scores=experiment.domain.human_scores,
        security=security.of_learner(settings[SecuritySettings]),
    )


def _run_actor(experiment: Experiment, settings: Settings) -> None:
    address = settings[RunSettings].server_address
    secured = security.of_actor(settings[SecuritySettings])
    with scratch.temporary_folder() as folder:
        actor.exit_on_signals(clean_up=lambda: scratch.remove(folder))
        actor.run(address, settings[actor.ActorSettings], experiment.domain, secured)


def _run_learner(experiment: Experiment, settings: Settings) -> None:
    from seed_rl import learner  # TensorFlow, which an actor does without

    learner.run(learner_config(experiment, settings))
