"""One machine of a cluster: the learner's, or one with actors. The images' entry point.

    python -m gcp.run ENVIRONMENT AGENT ACTORS_PER_MACHINE [ENVS_PER_ACTOR] [--any_flag=value ...]

The command is the same on all machines; cluster.py says how each finds its part. Stopped by SIGTERM
(a preempted machine, a deleted pod) the learner saves a checkpoint; started again, it goes on from
there. Actors that die are started again, and wait while the learner is away.

Exit code: 0 after the end of training, and then only: else a cluster would not start the machine
again. 128 + n after signal n; 1 for a mistake of the user, with one sentence, which another try
would not mend; else the learner's.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gcp import cluster, credentials
from gcp.cluster import Place
from seed_rl import scratch
from seed_rl.children import Actor, die_with, end_all, on_stop_signals
from seed_rl.command import Command, parse
from seed_rl.errors import UserError, exit_code
from seed_rl.logs import last_words, quote
from seed_rl.progress import say
from seed_rl.settings import setting

USAGE = (
    "python -m gcp.run ENVIRONMENT AGENT ACTORS_PER_MACHINE [ENVS_PER_ACTOR] [--any_flag=value ...]"
)
POLL_SECONDS = 0.1
# Of actors, for the learner: another machine may first have to be found for it.
CONNECTION_TIMEOUT_SECONDS = 3_600


@dataclasses.dataclass(frozen=True)
class ClusterSettings:
    """The flags of this command; those of learner and actors are not known here."""

    logdir: str = setting("", "Folder of checkpoints and summaries; gs://bucket/folder in a cloud.")
    num_actor_machines: int = setting(
        1, "Machines with actors, where only SEED_RL_ROLE tells this machine's part.", minimum=1
    )
    actor_machine: int = setting(
        0,
        "Number of this one among them, from 0 (with JOB_COMPLETION_INDEX: that).",
        minimum=0,
        maximum=100_000,
    )
    credentials: str = setting(
        "",
        "Folder with a token, a certificate and its key as gcp/credentials.py makes them, of this "
        "machine or gs://bucket/folder; secures the network.",
    )
    tuning: bool = setting(
        False, "Hyper-parameter tuning: each trial has a folder of its own below --logdir."
    )


def learner_command(
    command: Command[ClusterSettings], place: Place, security: Sequence[str]
) -> list[str]:
    """What the learner's machine runs; `security` are flags."""
    settings = command.settings
    machines = place.num_actor_machines
    if machines == 0:
        raise UserError(
            "CLUSTER_SPEC: expected a second worker pool, with the actors, got the learner's only."
        )
    actors = command.num_actors * (machines or settings.num_actor_machines)
    return command.main(
        "learner",
        f"--server_address={place.listening_address}",
        f"--num_envs={actors * command.envs_per_actor}",
        f"--logdir={_logdir(settings, place)}",
        *security,
    )


def actor_commands(
    command: Command[ClusterSettings], place: Place, security: Sequence[str]
) -> list[list[str]]:
    """What a machine of actors runs; `security` are flags."""
    machine = place.actor_machine
    first = command.num_actors * (command.settings.actor_machine if machine is None else machine)
    return [
        command.main(
            "actor",
            f"--server_address={place.learner_address}",
            f"--connection_timeout_secs={CONNECTION_TIMEOUT_SECONDS}",
            f"--task={task}",
            *security,
        )
        for task in range(first, first + command.num_actors)
    ]


def _security(source: str, folder: Path, role: str) -> list[str]:
    """The flags that secure the network; `folder` is for files to be kept in."""
    if not source:
        return []
    return credentials.flags(credentials.fetch(source, folder, role), role)


def _logdir(settings: ClusterSettings, place: Place) -> str:
    if not settings.tuning:
        return settings.logdir
    if not settings.logdir:
        raise UserError("--logdir: expected a folder, in which trials have theirs, got none.")
    if not place.trial:
        raise UserError("--tuning: expected a trial's number in CLUSTER_SPEC, got none.")
    return f"{settings.logdir.rstrip('/')}/{place.trial}"


def run_learner(command: Sequence[str]) -> int:
    """Runs the learner, whose output is this program's, to its end. Returns the exit code."""
    learner = subprocess.Popen(
        command, start_new_session=True, preexec_fn=functools.partial(die_with, os.getpid())
    )
    stopped_by = 0

    def pass_on(number: int, frame: object) -> None:
        nonlocal stopped_by
        del frame
        stopped_by = number
        learner.terminate()

    on_stop_signals(pass_on)
    code = learner.wait()
    if stopped_by:
        return 128 + stopped_by
    return code if code >= 0 else 128 - code


class ActorMachine:
    """Keeps a machine's actors alive until training has ended.

    Args:
      commands: of the actors.
      logs: folder for what they print.
    """

    def __init__(self, commands: Sequence[Sequence[str]], logs: Path):
        self._signal = 0  # the stop signal that came
        on_stop_signals(self._stop)
        # A thread per core in each of many processes would slow all of them down.
        self._actors = [
            Actor(f"actor_{i:02}", command, logs, environment={"OMP_NUM_THREADS": "1"})
            for i, command in enumerate(commands)
        ]
        self._first_log = self._actors[0].log.open(errors="replace")

    def run(self) -> int:
        """Returns this program's exit code."""
        say(f"Started {len(self._actors)} actors; what the first of them prints:")
        try:
            while not self._signal:
                self._show_first()
                for actor in self._actors:
                    code = actor.tend()
                    if code == 0:
                        say("Training has ended.")
                        return 0
                    if code is not None:
                        self._tell(actor)
                    if actor.mistakes:
                        return 1
                time.sleep(POLL_SECONDS)
            return 128 + self._signal
        finally:
            end_all(self._actors)
            self._show_first()

    def _show_first(self) -> None:
        """Logs are on this machine only, which may be hard to reach, and one is like the others."""
        if text := self._first_log.read():
            say(text.rstrip("\n"))

    def _tell(self, actor: Actor) -> None:
        if actor is not self._actors[0]:
            quote(actor.log, actor.mistakes or last_words(actor.log).lines)

    def _stop(self, number: int, frame: object) -> None:
        del frame
        self._signal = number


def main(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    command = parse(argv, USAGE, ClusterSettings)
    place = cluster.find(environment)
    with scratch.temporary_folder() as folder:
        security = _security(command.settings.credentials, folder, place.role)
        if place.role == "actor":
            return ActorMachine(actor_commands(command, place, security), folder).run()
        return run_learner(learner_command(command, place, security))


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:], os.environ)))
