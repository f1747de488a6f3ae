"""A cluster of two pools on this machine: the entry point of the images, with real learner and
actors, an encrypted network and a token."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.end_to_end.processes import Program, assert_refused, main_program, run, wait_until

ACTORS_PER_MACHINE, ENVS_PER_ACTOR, MACHINES = 2, 2, 2
COMMAND = ["catch", "vtrace", str(ACTORS_PER_MACHINE), str(ENVS_PER_ACTOR), "--batch_size=4"]


class Cluster:
    """Starts the machines; each with the one command, and with its own CLUSTER_SPEC."""

    def __init__(self, folder: Path, *flags: str):
        self._folder = folder
        self._address = f"localhost:{_free_port()}"
        self._flags = flags

    def machine(self, pool: str, index: int = 0, without: str = "") -> Program:
        """Starts a machine, without those flags that have `without` in them, if it is given."""
        pools = {"workerpool0": [self._address], "workerpool1": ["one:2222", "two:2222"]}
        task = {"type": pool, "index": index, "trial": "3"}
        flags = [flag for flag in self._flags if not without or without not in flag]
        variables = {"CLUSTER_SPEC": json.dumps({"cluster": pools, "task": task})}
        command = main_program("gcp.run", *COMMAND, *flags)
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
def secrets(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags for a certificate, which the learner shows and actors trust, and a token."""
    folder = tmp_path_factory.mktemp("secrets")
    certificate = trustme.CA().issue_cert("seed-rl-learner")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    (folder / "token").write_text("0123456789abcdef\n")
    files = {"tls_cert": "cert.pem", "tls_key": "key.pem", "auth_token_file": "token"}
    flags = [f"--{flag}={folder / name}" for flag, name in files.items()]
    return [*flags, "--tls_server_name=seed-rl-learner"]


def _children(pid: int) -> list[int]:
    return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_cluster_trains_to_the_end_whoever_dies(tmp_path: Path, secrets: list[str]) -> None:
    logdir = tmp_path / "log dir"
    frames = 150_000
    flags = [f"--logdir={logdir}", f"--total_environment_frames={frames}", "--batch_size=4"]
    cluster = Cluster(tmp_path, *flags, *secrets)
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
            learner.wait_for("Learner: resuming from .*checkpoint-1")
            finished = learner.finish()
            assert finished.code == 0, finished.output
        for machine in actors:
            finished = machine.finish()
            assert finished.code == 0, finished.output
            assert "Training has ended." in finished.output
    num_envs = MACHINES * ACTORS_PER_MACHINE * ENVS_PER_ACTOR
    assert f"({num_envs} x " in learner.output  # unrolls in the making: one for each


def test_sigterm_ends_a_machine_of_actors(tmp_path: Path) -> None:
    with Cluster(tmp_path).machine("workerpool1") as machine:
        machine.wait_for(f"Started {ACTORS_PER_MACHINE} actors")
        children = _children(machine.pid)
        assert len(children) == ACTORS_PER_MACHINE
        assert machine.terminate().code == 128 + signal.SIGTERM
        wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_actors_without_the_token_end_their_machine(tmp_path: Path, secrets: list[str]) -> None:
    cluster = Cluster(tmp_path, f"--logdir={tmp_path / 'run'}", *secrets)
    with cluster.machine("workerpool0") as learner:
        learner.wait_for("Learner: serving at")
        with cluster.machine("workerpool1", without="token") as machine:
            finished = machine.finish()
    assert finished.code == 1, finished.output
    assert "Error: --auth_token_file: the learner at localhost:" in finished.output


def test_trials_have_folders_of_their_own(tmp_path: Path) -> None:
    with Cluster(tmp_path, f"--logdir={tmp_path}/tuned/", "--tuning").machine(
        "workerpool0"
    ) as learner:
        learner.wait_for("Learner: serving at")
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == ["3"]


def test_a_machine_without_a_place(tmp_path: Path) -> None:
    command = main_program("gcp.run", *COMMAND)
    assert_refused(run(tmp_path / "log", *command), "SEED_RL_ROLE", "CLUSTER_SPEC")
