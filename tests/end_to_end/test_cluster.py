"""A cluster of two pools on this machine: the entry point of the images, with real learner and
actors, an encrypted network and a token."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcp import credentials
from tests.end_to_end.processes import Program, assert_refused, main_program, run, wait_until

ACTORS_PER_MACHINE, ENVS_PER_ACTOR, MACHINES = 2, 2, 2
COMMAND = ["catch", "vtrace", str(ACTORS_PER_MACHINE), str(ENVS_PER_ACTOR), "--batch_size=4"]


class Cluster:
    """Starts the machines; each with the one command, and with its own CLUSTER_SPEC."""

    def __init__(self, folder: Path, *flags: str):
        self._folder = folder
        self._address = f"127.0.0.1:{_free_port()}"
        self._flags = flags

    def machine(self, pool: str, index: int = 0, *flags: str) -> Program:
        """Starts a machine, with flags of its own behind those of all."""
        pools = {"workerpool0": [self._address], "workerpool1": ["one:2222", "two:2222"]}
        task = {"type": pool, "index": index, "trial": "3"}
        variables = {"CLUSTER_SPEC": json.dumps({"cluster": pools, "task": task})}
        command = main_program("gcp.run", *COMMAND, *self._flags, *flags)
        log = self._folder / f"{pool}_{index}.log"
        return Program(log, *command, cwd=self._folder, variables=variables)

    @contextlib.contextmanager
    def actor_machines(self) -> Iterator[list[Program]]:
        with contextlib.ExitStack() as stack:
            machines = range(MACHINES)
            yield [stack.enter_context(self.machine("workerpool1", i)) for i in machines]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a token and a certificate."""
    folder = tmp_path_factory.mktemp("secrets")
    shutil.rmtree(folder)
    credentials.make(folder)
    return folder


def _children(pid: int) -> list[int]:
    return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_cluster_trains_to_the_end_whoever_dies(tmp_path: Path, secrets: Path) -> None:
    logdir = f"file://{tmp_path / 'log dir'}"  # as gs:// is, by TensorFlow's file systems
    flags = ["--total_environment_frames=150000", "--save_checkpoint_secs=5"]
    cluster = Cluster(tmp_path, f"--logdir={logdir}", *flags, f"--credentials={secrets}")
    with cluster.actor_machines() as actors:
        with cluster.machine("workerpool0") as learner:
            learner.wait_for(r"updates/s, return -?\d")
            for victim in _children(actors[0].pid):
                os.kill(victim, signal.SIGKILL)
            actors[0].wait_for("was started again", count=ACTORS_PER_MACHINE)
            finished = learner.terminate()
            assert finished.code == 128 + signal.SIGTERM, finished.output
            assert "Learner: saved" in finished.output
        assert all(machine.is_alive for machine in actors)
        with cluster.machine("workerpool0") as learner:
            learner.wait_for("Learner: resuming from file:.*checkpoint-")
            learner.wait_for("Learner: saved")
            (process,) = _children(learner.pid)
            os.kill(process, signal.SIGKILL)
            assert learner.finish().code == 128 + signal.SIGKILL
        with cluster.machine("workerpool0") as learner:
            learner.wait_for("Learner: resuming from file:.*checkpoint-")
            finished = learner.finish()
            assert finished.code == 0, finished.output
        for machine in actors:
            finished = machine.finish()
            assert finished.code == 0, finished.output
            assert "Training has ended." in finished.output
    num_envs = MACHINES * ACTORS_PER_MACHINE * ENVS_PER_ACTOR
    assert f"({num_envs} x " in learner.output  # unrolls in the making: one for each
    assert (tmp_path / "log dir" / "policy" / "saved_model.pb").exists()


def test_sigterm_ends_a_machine_of_actors(tmp_path: Path) -> None:
    with Cluster(tmp_path).machine("workerpool1") as machine:
        machine.wait_for(f"Started {ACTORS_PER_MACHINE} actors")
        children = _children(machine.pid)
        assert len(children) == ACTORS_PER_MACHINE
        assert machine.terminate().code == 128 + signal.SIGTERM
        wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_strangers_end_their_machine(tmp_path: Path, secrets: Path) -> None:
    """A machine with another token, and one with the token and another certificate."""
    other_token, other_certificate = tmp_path / "other_token", tmp_path / "other_certificate"
    for folder, own in (other_token, "cert.pem"), (other_certificate, "token"):
        credentials.make(folder)
        shutil.copy(secrets / own, folder)
    cluster = Cluster(tmp_path, f"--logdir={tmp_path / 'run'}")
    with cluster.machine("workerpool0", 0, f"--credentials={secrets}") as learner:
        learner.wait_for("Learner: serving at")
        with cluster.machine("workerpool1", 0, f"--credentials={other_token}") as machine:
            finished = machine.finish()
            assert finished.code == 1, finished.output
            assert "Error: --auth_token_file: the learner at 127.0.0.1:" in finished.output
        flags = [f"--credentials={other_certificate}", "--connection_timeout_secs=2"]
        with cluster.machine("workerpool1", 0, *flags) as machine:
            finished = machine.finish()
            assert finished.code == 1, finished.output
            assert re.search("no server answered .*(?i:certificate)", finished.output)


def test_trials_have_folders_of_their_own(tmp_path: Path) -> None:
    with Cluster(tmp_path, f"--logdir={tmp_path}/tuned/", "--tuning").machine(
        "workerpool0"
    ) as learner:
        learner.wait_for("Learner: serving at")
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == ["3"]


def test_a_machine_without_a_place(tmp_path: Path) -> None:
    command = main_program("gcp.run", *COMMAND)
    assert_refused(run(tmp_path / "log", *command), "SEED_RL_ROLE", "CLUSTER_SPEC")
