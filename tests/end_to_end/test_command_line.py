"""What the command line explains, takes and refuses."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from pathlib import Path

import pytest

from seed_rl import actor
from seed_rl.errors import CRASH_CODE
from seed_rl.learner_settings import DeviceSettings, LearnerSettings, OptimizerSettings
from seed_rl.main import Experiment, RunSettings
from seed_rl.security import SecuritySettings
from tests.end_to_end.processes import REPOSITORY, assert_refused, main_program, run

SHARED = (
    RunSettings,
    SecuritySettings,
    actor.ActorSettings,
    LearnerSettings,
    OptimizerSettings,
    DeviceSettings,
)
MAINS = [
    f"{domain}.{agent}_main"
    for domain in ("atari", "catch", "dmlab")
    for agent in ("vtrace", "r2d2")
] + ["football.vtrace_main"]
FLAGFILES = sorted(REPOSITORY.glob("*/flags/*.flags"))


@pytest.mark.parametrize("main", MAINS)
def test_help_explains_every_flag_without_tensorflow(main: str, tmp_path: Path) -> None:
    experiment = importlib.import_module(main).EXPERIMENT
    program = main_program(main, "--help")
    _, output = run(tmp_path / "log", program[0], "-X", "importtime", *program[1:])
    assert "absl.flags" in output  # the list of imports is there
    assert not re.search(r"\| +(tensorflow|tf_keras|tf_agents)\b", output)
    shown = _entries(output)
    for field in _fields(experiment):
        default = experiment.defaults.get(field.name, field.default)
        assert field.metadata["help"] in shown[field.name]
        if default is not None:
            text = str(default).lower() if isinstance(default, bool) else default
            assert f"(default: '{text}')" in shown[field.name]


@pytest.mark.parametrize("file", FLAGFILES, ids=lambda file: f"{_domain(file)}-{file.name}")
def test_named_experiments_parse(file: Path, tmp_path: Path) -> None:
    agent = file.name.split("_")[0]
    flags = [f"--flagfile={file}", "--only_check_args"]
    finished = run(tmp_path / "log", *main_program(f"{_domain(file)}.{agent}_main", *flags))
    assert finished.code == 0, finished.output


def test_what_has_named_experiments() -> None:
    found = {(_domain(file), file.name.split("_")[0]) for file in FLAGFILES}
    assert found == {
        ("atari", "r2d2"),
        ("atari", "vtrace"),
        ("dmlab", "vtrace"),
        ("football", "vtrace"),
    }


@pytest.mark.parametrize(
    ("flag", "parts"),
    [
        ("--bach_size=4", ["bach_size", "batch_size"]),
        ("--batch_size=0", ["--batch_size=0", "positive"]),
        ("--batch_size=many", ["--batch_size=many"]),
        ("--discounting=1.5", ["--discounting=1.5", "[0.0, 1.0]"]),
        ("--precision=float16", ["--precision=float16", "bfloat16"]),
        ("--stack_size=5", ["--stack_size=5", "[1, 4]"]),
        ("Pong", ["'Pong'"]),
    ],
)
def test_flags_that_do_not_parse(flag: str, parts: list[str], tmp_path: Path) -> None:
    finished = run(tmp_path / "log", *main_program("atari.r2d2_main", flag))
    assert finished.code == 1
    assert "Traceback" not in finished.output
    for part in parts:
        assert part in finished.output


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--game=Pung", ["--game=Pung", "Pong"]),
        ("--game=Xyzzyx", ["--game=Xyzzyx", "MsPacman"]),
        ("--game=Pong,Breakout", ["--game=Pong,Breakout", "--full_action_space"]),
        (
            "--game=Pong,Qbert,Boxing --full_action_space --num_envs=2",
            ["--num_envs", "3 tasks", "2."],
        ),
        (
            "--game=Pong,Breakout --full_action_space --num_eval_envs=1",
            ["--num_eval_envs", "each of the 2 tasks", "got 1"],
        ),
        ("--num_envs=8 --num_eval_envs=8", ["--num_eval_envs", "--num_envs", "got 8"]),
        ("--replay_buffer_size=100000000", ["--replay_buffer_size", "GiB"]),
        ("--inference_batch_size=4", ["--inference_batch_size", "--env_batch_size", "got 4"]),
        ("--init_checkpoint=/nowhere/checkpoint-1", ["--init_checkpoint", "/nowhere/checkpoint-1"]),
        ("--logdir=", ["--logdir", "got ''"]),
        ("--logdir=ram://", ["--logdir", "got 'ram://'"]),
        ("--learing_rate=1", ["learing_rate", "learning_rate"]),
        ("--run_mode=actor --task=99999999999", ["--task", "99999999999"]),
        ("--logdir=/proc/version/x", ["--logdir", "/proc/version"]),
        ("--server_address=nonsense", ["--server_address", "'nonsense'", "host:port"]),
        ("--server_address=0.0.0.0:80", ["--server_address", "0.0.0.0:80", "--insecure_network"]),
    ],
)
def test_flags_that_cannot_be_followed(flags: str, parts: list[str], tmp_path: Path) -> None:
    command = main_program("atari.r2d2_main", f"--logdir={tmp_path}/logdir", *flags.split())
    assert_refused(run(tmp_path / "log", *command), *parts)


def _domain(flagfile: Path) -> str:
    return flagfile.parents[1].name


def _fields(experiment: Experiment) -> list[dataclasses.Field]:
    kinds = (*SHARED, experiment.domain.settings, *experiment.settings)
    return [field for kind in kinds for field in dataclasses.fields(kind)]


def _entries(output: str) -> dict[str, str]:
    """What --help says on each flag, on one line."""
    pattern = r"^  --(?:\[no\])?(\w+): (.*?)(?=^  -|^\S|\Z)"
    entries = re.findall(pattern, output, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in entries}


def test_a_crash_is_told_from_a_mistake(tmp_path: Path) -> None:
    program = tmp_path / "crash_main.py"
    program.write_text(
        "import dataclasses\n"
        "from catch.vtrace_main import EXPERIMENT\n"
        "from seed_rl import main\n"
        "main.run(dataclasses.replace(EXPERIMENT, create_algorithm=lambda *_: 1 / 0))\n"
    )
    finished = run(tmp_path / "log", sys.executable, str(program), f"--logdir={tmp_path}/logdir")
    assert finished.code == CRASH_CODE
    assert "ZeroDivisionError" in finished.output
    assert not re.search(r"^Error: ", finished.output, re.MULTILINE)
