"""Starts a training on Google Cloud: `python3 -m gcp.submit DOMAIN ...`, as gcp/train_*.sh do.

It needs Python's standard library and the programs gcloud, openssl and docker, but nothing of this
project's set-up: a clean checkout will do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gcp import credentials, prices
from gcp.arguments import REPOSITORY, bucket, make_job, parse
from gcp.job import Job
from gcp.prices import Estimate
from gcp.tuning import Tuning
from seed_rl.errors import UserError, exit_code


def submit(arguments: argparse.Namespace) -> None:
    """Does all that the command line asks for.

    Raises:
      UserError: something is missing, or a program failed.
    """
    project = arguments.project or _gcloud_project()
    job = make_job(arguments, project, arguments.image_tag or _new_tag())
    tuning = Tuning.read(arguments.tune) if arguments.tune else None
    spec = job.tuning_spec(tuning.study) if tuning else job.spec()
    _tell(arguments, job, trials=tuning.max_trials if tuning else 1)
    if arguments.dry_run:
        print(json.dumps(spec, indent=2))
        return
    place = [f"--project={project}", f"--region={arguments.region}"]
    checks = [f"--bucket={bucket(arguments, project)}"]
    checks += ["--no_images"] if arguments.image_tag else []
    _run(REPOSITORY / "gcp/setup.sh", *place, *checks)
    _check_not_running(place, job)
    if not arguments.yes:
        _ask()
    if not arguments.image_tag:
        _push_images(job)
    _upload_credentials(job)
    kind, counts = "custom-jobs", []
    if tuning:
        kind = "hp-tuning-jobs"
        counts = [f"--max-trial-count={tuning.max_trials}"]
        counts += [f"--parallel-trial-count={tuning.parallel_trials}"]
    _create([kind, "create", *counts, *place, f"--display-name={job.name}"], spec)
    print(f"Checkpoints and TensorBoard data: {job.folder}")
    print(f"To stop, list the jobs: gcloud ai {kind} list {' '.join(place)}")


def _estimate(arguments: argparse.Namespace, job: Job) -> Estimate:
    actors = job.actor_machine, job.num_actor_machines
    speed = arguments.frames_per_second or prices.frames_per_second(job.domain, *actors)
    price = arguments.price_per_hour or prices.dollars_per_hour(job.learner, *actors)
    return Estimate(price, speed)


def _tell(arguments: argparse.Namespace, job: Job, trials: int) -> None:
    """Says what is to run and what it costs.

    To standard error, so that a dry run's output is the job and nothing else.
    """
    estimate = _estimate(arguments, job)
    price_source, speed_source, bound = "yours", "yours", "about"
    if not arguments.price_per_hour:
        price_source = f"us-central1, by a table of {prices.DATE}; yours: --price_per_hour"
    if not arguments.frames_per_second:
        speed_source = "all that actors can play; learners may take less: --frames_per_second"
        bound = "at least"
    learner = job.learner
    accelerator = f" with {learner.count} {learner.accelerator}" if learner.count else ""
    num_envs = job.num_actor_machines * job.actors_per_machine * job.envs_per_actor
    lines = [
        f"{job.domain} {job.agent}, run {job.folder}:",
        f"  learner {learner.machine}{accelerator}; {job.num_actor_machines} x {job.actor_machine}"
        f" for {num_envs} environments{'; spot machines, which cost less' if job.spot else ''}",
        f"  about ${estimate.dollars_per_hour:.2f} an hour ({price_source})",
        f"  {bound} ${estimate.dollars_per_billion_frames:,.0f} and"
        f" {estimate.hours_per_billion_frames:,.0f} hours for 1e9 frames, at"
        f" {estimate.frames_per_second:,.0f} frames/s ({speed_source})",
    ]
    if trials > 1:
        lines.append(f"  for each of {trials} trials")
    print("\n".join(lines), file=sys.stderr)


def _check_not_running(place: Sequence[str], job: Job) -> None:
    """Two learners with one folder would take each other's checkpoints away."""
    states = " OR ".join(f"state=JOB_STATE_{state}" for state in ("QUEUED", "PENDING", "RUNNING"))
    criteria = f"--filter=displayName={job.name} AND ({states})"
    running = _output(
        "gcloud", "ai", "custom-jobs", "list", *place, criteria, "--format=value(name)"
    )
    if running:
        raise UserError(
            f"--name: expected one without a job that runs, got '{job.name}', which has "
            f"{running.split()[0]}; to end that: gcloud ai custom-jobs cancel {running.split()[0]}"
        )


def _ask() -> None:
    if not sys.stdin.isatty():
        raise UserError("--yes: expected it where nobody can be asked, got no terminal.")
    try:
        answer = input("Submit? [y/N] ")
    except (EOFError, KeyboardInterrupt):
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise UserError("Nothing was submitted.")


def _push_images(job: Job) -> None:
    flavours = [f"--flavour={flavour}" for flavour in (job.learner.flavour, "actor")]
    tag = f"--tag={job.tag}"
    _run(REPOSITORY / "docker/build.sh", job.domain, *flavours, tag)
    _run("gcloud", "auth", "configure-docker", "--quiet", job.repository.partition("/")[0])
    repository = f"--repository={job.repository}"
    _run(REPOSITORY / "docker/push.sh", job.domain, repository, *flavours, tag)


def _upload_credentials(job: Job) -> None:
    """New ones for every job: who stops one may want to lock its machines out."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "credentials"
        credentials.make(made)
        files = [str(made / name) for name in credentials.FILES]
        _run("gcloud", "storage", "cp", *files, f"{job.credentials}/")


def _create(words: Sequence[str], spec: Mapping[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "job.json"
        config.write_text(json.dumps(spec))
        _run("gcloud", "ai", *words, f"--config={config}")


def _gcloud_project() -> str:
    project = _output("gcloud", "config", "get-value", "project")
    if project in ("", "(unset)"):
        raise UserError(
            "--project: expected one, or gcloud's (gcloud config set project PROJECT), got none."
        )
    return project


def _new_tag() -> str:
    """The one that docker/build.sh would take."""
    return _output(
        "bash", "-c", 'source "$1" && default_tag', "bash", REPOSITORY / "docker/images.sh"
    )


def _output(*command: str | Path) -> str:
    return _call(command, stdout=subprocess.PIPE).strip()


def _run(*command: str | Path) -> None:
    _call(command)


def _call(command: Sequence[str | Path], **options: Any) -> str:
    """Runs a program, which prints its own complaints. Returns what it wrote to a pipe."""
    try:
        result = subprocess.run(command, check=True, text=True, cwd=REPOSITORY, **options)
    except FileNotFoundError:
        raise UserError(f"{command[0]}: expected this program on the path, got none.") from None
    except subprocess.CalledProcessError as error:
        words = " ".join(str(word) for word in command[:4])
        raise UserError(f"`{words} ...` ended with exit code {error.returncode}.") from error
    return result.stdout or ""


def main(argv: Sequence[str]) -> int:
    submit(parse(argv))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
