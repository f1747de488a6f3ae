"""run_local.sh --docker."""

import csv
import os
import pty
import subprocess

import pytest

RUN = "run_local.sh"
ARGUMENTS = ["atari", "vtrace", "4"]


def expected_run(machine, image, *arguments, mounts=(), options=()):
    runs = machine.checkout / "runs"
    places = [(runs, "/seed_rl/runs"), *((path, path) for path in mounts)]
    return [
        "run",
        *["--rm", "--init", "--network=host", "--pid=host", "--env=TINI_SUBREAPER=1"],
        *["--stop-timeout=120", f"--user={os.getuid()}:{os.getgid()}", "--env=HOME=/tmp"],
        *options,
        *(
            w
            for path, there in places
            for w in ("--mount", f'type=bind,"source={path}","target={there}"')
        ),
        *["--entrypoint=/seed_rl/.venv/bin/python", image, "-u", "-m", "seed_rl.local"],
        *arguments,
    ]


@pytest.fixture
def built(machine):
    """A machine with the image of this commit."""
    machine.image = f"seed_rl/atari-cpu:{machine.commit()}"
    machine.variables["BUILT"] = machine.image
    return machine


def run(machine, *arguments, **options):
    """The one call of `docker run`."""
    machine.output(RUN, "--docker", *arguments, **options)
    (call,) = machine.calls("run")
    return call


def test_it_runs_in_the_image_that_is_there(built):
    arguments = [*ARGUMENTS, "16", "--game=Breakout"]
    assert run(built, *arguments) == expected_run(built, built.image, *arguments)
    assert built.calls("build") == []
    assert (built.checkout / "runs").is_dir()


def test_it_builds_the_image_that_is_missing(machine):
    image = f"seed_rl/football-cpu:{machine.commit()}"
    assert run(machine, "football/", "vtrace", "2") == expected_run(
        machine, image, "football/", "vtrace", "2"
    )
    assert f"--tag={image}" in machine.calls("build")[-1]


def test_it_builds_anew_what_a_changed_checkout_may_have_built_otherwise(built):
    (built.checkout / "setup.sh").open("a").write("\n")
    built.variables["BUILT"] = f"{built.image}-changed"
    assert f"{built.image}-changed" in run(built, *ARGUMENTS)
    assert len(built.calls("build")) == 3


HARD = "a 'b' \"c\" $HOME `d` \\e, f:g"


def test_arguments_arrive_as_they_were_given(built, tmp_path):
    logdir = tmp_path / HARD
    call = run(built, *ARGUMENTS, f"--game={HARD}", f"--logdir={logdir}", HARD)
    assert call[-3:] == [f"--game={HARD}", f"--logdir={logdir}", HARD]
    assert logdir.is_dir()
    mount = next(csv.reader([call[call.index("--entrypoint=/seed_rl/.venv/bin/python") - 1]]))
    assert mount == ["type=bind", f"source={logdir}", f"target={logdir}"]


@pytest.mark.parametrize(
    "form",
    [["--logdir=my/runs"], ["-logdir=my/runs"], ["--logdir", "my/runs"], ["-logdir", "my/runs"]],
)
def test_relative_logdir_is_the_callers(built, tmp_path, form):
    logdir = tmp_path / "my" / "runs"
    call = run(built, *ARGUMENTS, *form, "--seed=1", cwd=tmp_path)
    arguments = [*ARGUMENTS, f"--logdir={logdir}", "--seed=1"]
    assert call == expected_run(built, built.image, *arguments, mounts=[logdir])


def test_last_logdir_counts(built, tmp_path):
    both = [f"--logdir={tmp_path / name}" for name in "ab"]
    call = run(built, *ARGUMENTS, *both)
    assert call == expected_run(built, built.image, *ARGUMENTS, *both, mounts=[tmp_path / "b"])


@pytest.mark.parametrize("logdir", ["", "gs://bucket/folder"])
def test_logdir_that_is_no_directory_is_the_runs_own_matter(built, logdir):
    call = run(built, *ARGUMENTS, f"--logdir={logdir}")
    assert call == expected_run(built, built.image, *ARGUMENTS, f"--logdir={logdir}")


@pytest.mark.parametrize(
    ("accelerator", "option"), [("gpu", "--gpus=all"), ("tpu", "--privileged")]
)
def test_image_and_devices_are_those_of_the_machine(machine, accelerator, option):
    image = f"seed_rl/atari-{accelerator}:unknown"
    call = run(machine, *ARGUMENTS, SEED_RL_ACCELERATOR=accelerator)
    assert call == expected_run(machine, image, *ARGUMENTS, options=[option])


def test_at_a_terminal_it_is_interactive(built):
    ours, theirs = pty.openpty()
    command = [built.checkout / RUN, "--docker", *ARGUMENTS]
    environment = built.environment()
    subprocess.run(command, env=environment, stdin=theirs, stdout=theirs, check=True, timeout=60)
    subprocess.run(
        command, env=environment, stdin=theirs, stdout=subprocess.DEVNULL, check=True, timeout=60
    )
    os.close(ours)
    os.close(theirs)
    options = ["--interactive", "--tty"]
    assert built.calls("run") == [
        expected_run(built, built.image, *ARGUMENTS, options=options),
        expected_run(built, built.image, *ARGUMENTS),
    ]


def test_exit_code_is_the_runs(built):
    built.variables["FAILS"] = "run"
    assert built.run(RUN, "--docker", *ARGUMENTS).returncode == 7


@pytest.mark.parametrize(
    ("arguments", "fails", "accelerator", "complaint"),
    [
        (
            ["mine", "vtrace", "4"],
            "",
            "",
            "run_local.sh --docker: ENVIRONMENT (others run without --docker): expected one of"
            " atari dmlab football, got 'mine'.",
        ),
        (
            ARGUMENTS,
            "",
            "none",
            "run_local.sh --docker: SEED_RL_ACCELERATOR: expected cpu, gpu or tpu, which learners"
            " need, got 'none'.",
        ),
        (
            [*ARGUMENTS, "--logdir"],
            "",
            "",
            "run_local.sh --docker: --logdir: expected a directory, got nothing.",
        ),
        (
            [*ARGUMENTS, "--logdir=/dev/null/mine"],
            "",
            "",
            "run_local.sh --docker: --logdir: cannot make '/dev/null/mine': Not a directory.",
        ),
        (
            ARGUMENTS,
            "version",
            "",
            "run_local.sh --docker: docker: expected an engine that answers, got: no luck;"
            " start it, as with: sudo systemctl start docker",
        ),
        (
            ARGUMENTS,
            "build",
            "",
            "docker/build.sh: docker could not build seed_rl/build-cpu:unknown; its output is"
            " above.",
        ),
    ],
)
def test_what_cannot_run_is_one_sentence(machine, arguments, fails, accelerator, complaint):
    machine.variables["FAILS"] = fails
    refusal = machine.refusal(RUN, "--docker", *arguments, SEED_RL_ACCELERATOR=accelerator)
    assert refusal == complaint
    assert machine.calls("run") == []


def test_its_help_is_that_of_run_local(machine):
    assert machine.output(RUN, "--docker", "--help") == machine.output(RUN, "--help")
    assert machine.run(RUN, "--docker").returncode == 1
    assert machine.calls() == []


def test_only_the_first_argument_asks_for_docker(machine):
    (machine.checkout / "setup.sh").write_text("#!/bin/sh\necho set up\nexit 1\n")
    finished = machine.run(RUN, *ARGUMENTS, "--docker")
    assert (finished.returncode, finished.stdout) == (1, "set up\n")
    assert machine.calls() == []
