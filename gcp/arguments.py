"""The command line of gcp/train_*.sh: from words to a job. Errors are UserError."""

from __future__ import annotations

import argparse
import dataclasses
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gcp.hardware import ACCELERATORS, learner_hardware
from gcp.job import Job
from seed_rl.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[1]
ARTIFACTS = "seed-rl"  # the repository of images in Artifact Registry
DEFAULT_ACCELERATOR = "t4"

_JOBS_FLAGS = ("logdir", "credentials", "tuning", "tuning_metric", "run_mode", "server_address")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{message.removeprefix('argument ')} ({self.prog} --help lists all; flags of the "
            "training go behind --)."
        )


@dataclasses.dataclass(frozen=True)
class Defaults:
    """How a domain is trained if the user does not say otherwise: as in the paper.

    Attributes:
      agent: names the module <domain>.<agent>_main.
      flagfile: of the repository.
      actor_machine: machine type.
      num_actor_machines, actors_per_machine, envs_per_actor: their product is the paper's number of
        environments, or about the least that it has.
      flags: beside those of the file.
      memory: gigabytes that a learner with the file's settings takes.
    """

    agent: str
    flagfile: str
    actor_machine: str
    num_actor_machines: int
    actors_per_machine: int
    envs_per_actor: int
    flags: tuple[str, ...] = ()
    memory: float = 0.0


DOMAINS = {
    "atari": Defaults(
        "r2d2",
        "atari/flags/r2d2_paper.flags",
        "n1-standard-16",
        5,
        61,
        2,
        flags=("--num_eval_envs=30",),
        memory=96.0,  # 83 GiB of it are the replay
    ),
    "football": Defaults(
        "vtrace", "football/flags/vtrace_paper_checkpoints.flags", "n1-standard-32", 4, 25, 4
    ),
    "dmlab": Defaults("vtrace", "dmlab/flags/vtrace_paper.flags", "n1-standard-32", 4, 30, 4),
}


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line: the domain, then what the user wrote. Exits where that asks for help.

    Raises:
      UserError: it cannot be understood.
    """
    if not argv or argv[0] not in DOMAINS:
        raise UserError(f"Expected gcp/train_DOMAIN.sh for {', '.join(DOMAINS)}, got {argv[:1]}.")
    parser = Parser(
        prog=f"gcp/train_{argv[0]}.sh",
        description="Starts a training on Vertex AI.",
        epilog="Flags of the training itself go behind --, as in: -- --game=Breakout --seed=1",
        allow_abbrev=False,
    )
    parser.add_argument("domain", choices=list(DOMAINS), help=argparse.SUPPRESS)
    defaults = DOMAINS[argv[0]]
    _add_place(parser)
    _add_machines(parser, defaults)
    _add_training(parser, defaults)
    _add_submission(parser)
    own, training = _split(argv)
    _check_training_flags(training)
    arguments = parser.parse_args(own)
    arguments.training_flags = training
    return arguments


def _check_training_flags(words: Sequence[str]) -> None:
    """Finds what machines would refuse, or what takes them away from what was announced."""
    if words and not words[0].startswith("-"):
        raise UserError(f"--: expected flags behind it, got '{words[0]}'.")
    for word in words:
        if word == "--":
            raise UserError("--: expected it once, got it again behind itself.")
        if re.sub("^--?(no)?", "", word).partition("=")[0] in _JOBS_FLAGS:
            raise UserError(f"--: expected no flag that the job sets, got {word}.")


def _add_place(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--project", default="", help="default: gcloud's")
    add("--region", default="us-central1", help="of job, bucket and images (%(default)s)")
    add("--bucket", default="", help="without gs:// (PROJECT-seed-rl)")
    add(
        "--name",
        default="",
        help="of the run (DOMAIN-TIME); the same name goes on from its last checkpoint",
    )
    add(
        "--image_tag",
        default="",
        help="of images that are pushed already; default: this checkout's are built and pushed",
    )


def _add_machines(parser: argparse.ArgumentParser, defaults: Defaults) -> None:
    add = parser.add_argument
    add(
        "--accelerator",
        default=DEFAULT_ACCELERATOR,
        choices=list(ACCELERATORS),
        help="the learner's (%(default)s)",
    )
    add("--accelerator_count", type=_positive, help="default: the fewest that will do")
    add("--learner_machine", default="", help="default: one that fits the accelerator")
    add("--actor_machine", default=defaults.actor_machine, help="%(default)s")
    for name, value, text in (
        ("actor_machines", defaults.num_actor_machines, "machines with actors"),
        ("actors_per_machine", defaults.actors_per_machine, "actor processes on each"),
        ("envs_per_actor", defaults.envs_per_actor, "environments in each of those"),
    ):
        add(f"--{name}", type=_positive, default=value, help=f"{text} (%(default)s)")
    add("--spot", action="store_true", help="cheaper machines, which may be taken away")


def _add_training(parser: argparse.ArgumentParser, defaults: Defaults) -> None:
    add = parser.add_argument
    add("--agent", default=defaults.agent, help="which AGENT_main.py is run (%(default)s)")
    add(
        "--flagfile",
        default=defaults.flagfile,
        help="settings before those behind --, '' for none (%(default)s)",
    )
    add("--tune", metavar="FILE", default="", help="tunes hyper-parameters: JSON with a studySpec")


def _add_submission(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--price_per_hour", type=_amount, help="of all machines, in dollars; default: an estimate")
    add("--frames_per_second", type=_amount, help="for the estimate; default: what actors can do")
    add("--yes", action="store_true", help="submit without asking")
    add("--dry_run", action="store_true", help="print the job, submit nothing")


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is before the first --, and what is behind it."""
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, []
    end = arguments.index("--")
    return arguments[:end], arguments[end + 1 :]


def _positive(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 99999, got '{text}'")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"expected a number from 0.01 to 1e9, got '{text}'")
    return value


def make_job(arguments: argparse.Namespace, project: str, tag: str) -> Job:
    """The job that the command line asks for.

    Raises:
      UserError: there is no such job.
    """
    _check_names(arguments, project)
    defaults = DOMAINS[arguments.domain]
    name = arguments.name or f"{arguments.domain}-{_now()}"
    if arguments.tune and arguments.name:
        name += f"-{_now()}"  # a trial must not go on from another study's checkpoint
    as_in_paper = (arguments.agent, arguments.flagfile) == (defaults.agent, defaults.flagfile)
    flags = list(defaults.flags if as_in_paper else ())
    if arguments.flagfile:
        flags.insert(0, f"--flagfile={arguments.flagfile}")
    return Job(
        domain=arguments.domain,
        agent=arguments.agent,
        folder=f"gs://{bucket(arguments, project)}/seed_rl/{name}",
        repository=f"{arguments.region}-docker.pkg.dev/{project}/{ARTIFACTS}",
        tag=tag,
        learner=learner_hardware(
            arguments.accelerator,
            arguments.accelerator_count,
            arguments.learner_machine,
            defaults.memory if as_in_paper else 0.0,
        ),
        actor_machine=arguments.actor_machine,
        num_actor_machines=arguments.actor_machines,
        actors_per_machine=arguments.actors_per_machine,
        envs_per_actor=arguments.envs_per_actor,
        spot=arguments.spot,
        flags=[*flags, *arguments.training_flags],
    )


def bucket(arguments: argparse.Namespace, project: str) -> str:
    """Name of the bucket, without gs://."""
    name = arguments.bucket or f"{project}-seed-rl"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", name):
        raise UserError(f"--bucket: expected the name of a bucket, without gs://, got '{name}'.")
    return name


def _check_names(arguments: argparse.Namespace, project: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", project):
        raise UserError(
            "--project: expected the id of a project, 6 to 30 small letters, digits and '-', got "
            f"'{project}'."
        )
    if not re.fullmatch(r"[a-z]+-[a-z]+[0-9]+", arguments.region):
        raise UserError(f"--region: expected one like us-central1, got '{arguments.region}'.")
    if arguments.name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", arguments.name):
        raise UserError(
            "--name: expected a letter or digit and then at most 99 of these, '.', '_' and '-', "
            f"got '{arguments.name}'."
        )
    mains = (REPOSITORY / arguments.domain).glob("*_main.py")
    if f"{arguments.agent}_main.py" not in [main.name for main in mains]:
        raise UserError(
            f"--agent: expected one with a file {arguments.domain}/AGENT_main.py, "
            f"got '{arguments.agent}'."
        )
    # In the image, only what the domains have is sure to be there.
    known = [str(file.relative_to(REPOSITORY)) for file in REPOSITORY.glob("*/flags/*.flags")]
    if arguments.flagfile and arguments.flagfile not in known:
        raise UserError(
            f"--flagfile: expected one of {', '.join(sorted(known))}, got '{arguments.flagfile}'."
        )
    if not re.fullmatch(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?", arguments.image_tag):
        raise UserError(
            "--image_tag: expected letters, digits, '_', '.' and '-', at most 128, "
            f"got '{arguments.image_tag}'."
        )


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")
