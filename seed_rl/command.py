"""Command lines that start learners and actors: ENVIRONMENT AGENT ACTORS [ENVS_PER_ACTOR]."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from absl import flags

from seed_rl.settings import define_flags, from_flags

DEFAULT_ENVS_PER_ACTOR = "8"
HELP_FLAGS = {"-help", "--help", "-helpfull", "--helpfull", "-helpshort", "--helpshort"}
REPOSITORY = Path(__file__).resolve().parents[1]

S = TypeVar("S")


@dataclasses.dataclass(frozen=True)
class Command(Generic[S]):
    """A command line, checked.

    Attributes:
      environment, agent: name the module <environment>.<agent>_main.
      num_actors: actor processes, on each machine of actors.
      envs_per_actor: environments in each of them.
      settings: the starting program's own flags.
      flags: all other flags, in their order; they go to learner and actors.
    """

    environment: str
    agent: str
    num_actors: int
    envs_per_actor: int
    settings: S
    flags: tuple[str, ...]

    def main(self, run_mode: str, *options: str) -> list[str]:
        """The command of the learner or an actor; the user's flags come last and so win."""
        return [
            *_main_program(self.environment, self.agent),
            f"--run_mode={run_mode}",
            f"--env_batch_size={self.envs_per_actor}",
            *options,
            *self.flags,
        ]


def parse(argv: Sequence[str], usage: str, settings: type[S]) -> Command[S]:
    """Reads the command line (without the program's name). With --help, runs the main program's.

    Args:
      argv: to read.
      usage: what was expected, for the user.
      settings: dataclass of the starting program's own flags; the others are not known here.

    Raises:
      SystemExit: with one sentence for the user, where it asks for what is not there.
    """
    words = list(itertools.takewhile(lambda argument: not argument.startswith("-"), argv))
    options = argv[len(words) :]
    wants_help = not HELP_FLAGS.isdisjoint(options)
    if not 3 <= len(words) <= 4 and not (wants_help and len(words) == 2):
        raise SystemExit(f"Expected {usage}, got: {shlex.join(argv) or 'nothing'}.")
    environment, agent = words[0].rstrip("/"), words[1]  # completion leaves a slash behind atari
    _check_main(environment, agent)
    if wants_help:
        _show_help(settings)
        os.execv(sys.executable, [*_main_program(environment, agent), *options])
    num_actors, envs_per_actor = (*words[2:], DEFAULT_ENVS_PER_ACTOR)[:2]
    own, others = _split_flags(options, settings)
    return Command(
        environment,
        agent,
        _positive("NUM_ACTORS", num_actors),
        _positive("ENVS_PER_ACTOR", envs_per_actor),
        own,
        tuple(others),
    )


def _show_help(settings: type) -> None:
    """The starting program's part of it."""
    own = [f"  --{field.name}: {field.metadata['help']}" for field in dataclasses.fields(settings)]
    print("Flags of this command:", *own, "Flags of learner and actors:", sep="\n", flush=True)


def _split_flags(options: Sequence[str], settings: type[S]) -> tuple[S, list[str]]:
    """The starting program's flags, and all others."""
    own = flags.FlagValues()
    own.set_gnu_getopt()  # in `--game Pong --logdir=x`, look for own flags behind Pong too
    define_flags(settings, flag_values=own)
    try:
        _, *others = own(["", *options], known_only=True)
    except (flags.Error, ValueError) as error:
        raise SystemExit(str(error)) from None
    return from_flags(settings, own), others


def _check_main(environment: str, agent: str) -> None:
    """Ends the program unless there is a module <environment>.<agent>_main."""
    roots = dict.fromkeys((REPOSITORY, Path.cwd()))
    mains = sorted(main for root in roots for main in root.glob("*/*_main.py"))
    found = [f"{main.parent.name} {main.name.removesuffix('_main.py')}" for main in mains]
    if f"{environment} {agent}" in found:
        return
    raise SystemExit(
        f"ENVIRONMENT AGENT: expected names with a file ENVIRONMENT/AGENT_main.py,"
        f" got '{environment} {agent}'; there are: {', '.join(found) or 'none'}."
    )


def _positive(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) == 0:
        raise SystemExit(f"{name}: expected a whole number from 1 to 999999, got '{text}'.")
    return int(text)


def _main_program(environment: str, agent: str) -> list[str]:
    return [sys.executable, "-m", f"{environment}.{agent}_main"]
