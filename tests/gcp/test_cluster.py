"""How a machine finds its part of a cluster, from variables as Vertex AI and others set them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gcp import cluster
from gcp.cluster import Place
from seed_rl.errors import UserError

LEARNER = "cmle-training-workerpool0-ab-0:2222"
VERTEX_POOLS = {
    "workerpool0": [LEARNER],
    "workerpool1": [f"cmle-training-workerpool1-ab-{i}:2222" for i in range(3)],
}
CHIEF_POOLS = {"chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"]}


def vertex(pool: str, index: int, pools: Any = VERTEX_POOLS, **task: str) -> dict[str, str]:
    specification = {
        "cluster": pools,
        "environment": "cloud",
        "task": {"type": pool, "index": index, **task},
        "job": "{}",
        "open_ports": [3333],
    }
    return {"CLUSTER_SPEC": json.dumps(specification)}


def tf_config(kind: str, index: int, pools: Any = CHIEF_POOLS) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": pools, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize(
    "environment, place",
    [
        (vertex("workerpool0", 0), Place("learner", LEARNER, None, 3)),
        (vertex("workerpool1", 2), Place("actor", LEARNER, 2, 3)),
        (vertex("workerpool1", 0, trial="7"), Place("actor", LEARNER, 0, 3, "7")),
        (
            {**vertex("workerpool0", 0), "CLOUD_ML_TRIAL_ID": "4"},
            Place("learner", LEARNER, None, 3, "4"),
        ),
        (
            # A second pool of actors goes on counting where the first ends.
            vertex("workerpool2", 1, {**VERTEX_POOLS, "workerpool2": ["a:1", "b:1"]}),
            Place("actor", LEARNER, 4, 5),
        ),
        (
            vertex("workerpool0", 0, {"workerpool0": [LEARNER]}),
            Place("learner", LEARNER, None, 0),
        ),
        (tf_config("chief", 0), Place("learner", "10.0.0.1:2222", None, 2)),
        (tf_config("worker", 1), Place("actor", "10.0.0.1:2222", 1, 2)),
        (
            tf_config("worker", 0, {"master": ["m:1"], "worker": ["w:1"]}),
            Place("actor", "m:1", 0, 1),
        ),
        (
            {"SEED_RL_ROLE": "learner", "SEED_RL_LEARNER_ADDRESS": "l:1", **tf_config("worker", 1)},
            Place("learner", "l:1"),
        ),
        (
            {
                "SEED_RL_ROLE": "actor",
                "SEED_RL_LEARNER_ADDRESS": "l:1",
                "JOB_COMPLETION_INDEX": "0",
            },
            Place("actor", "l:1", 0),
        ),
        ({**vertex("workerpool1", 1), **tf_config("chief", 0)}, Place("actor", LEARNER, 1, 3)),
    ],
)
def test_a_machine_finds_its_place(environment: dict[str, str], place: Place) -> None:
    assert cluster.find(environment) == place


@pytest.mark.parametrize(
    "environment, message",
    [
        ({}, "SEED_RL_ROLE: .* CLUSTER_SPEC or TF_CONFIG .* got none"),
        ({"SEED_RL_ROLE": "worker"}, "SEED_RL_ROLE: expected learner or actor, got 'worker'"),
        ({"SEED_RL_ROLE": "actor"}, "SEED_RL_LEARNER_ADDRESS: .*'host:port'"),
        ({"SEED_RL_ROLE": "actor", "SEED_RL_LEARNER_ADDRESS": "x"}, "SEED_RL_LEARNER_ADDRESS: "),
        (
            {
                "SEED_RL_ROLE": "actor",
                "SEED_RL_LEARNER_ADDRESS": "l:1",
                "JOB_COMPLETION_INDEX": "one",
            },
            "JOB_COMPLETION_INDEX: .*'one'",
        ),
        ({"CLUSTER_SPEC": "{"}, "CLUSTER_SPEC: expected JSON"),
        ({"CLUSTER_SPEC": "[]"}, "CLUSTER_SPEC: expected JSON"),
        ({"TF_CONFIG": '{"cluster": {}}'}, "TF_CONFIG: expected JSON"),
        ({"TF_CONFIG": '{"cluster": 1, "task": 2}'}, "TF_CONFIG: expected JSON"),
        (tf_config("worker", 0, {"worker": ["w:1"]}), "TF_CONFIG: .*for the learner, got worker"),
        (vertex("workerpool0", 1), r"CLUSTER_SPEC: .*\('workerpool0', 1\)"),
        ({"CLUSTER_SPEC": "[" * 100_000}, "CLUSTER_SPEC: expected JSON"),
        (
            {"CLUSTER_SPEC": vertex("workerpool1", 7)["CLUSTER_SPEC"].replace("7", "Infinity")},
            "CLUSTER_SPEC: expected JSON",
        ),
        (tf_config("worker", 2), r"TF_CONFIG: .*\('worker', 2\)"),
        (tf_config("ps", 0), r"TF_CONFIG: .*\('ps', 0\)"),
        (vertex("workerpool1", 0, {"workerpool0": ["no port"]}), "CLUSTER_SPEC: .*'no port'"),
    ],
)
def test_what_tells_no_place(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        cluster.find(environment)


@pytest.mark.parametrize(
    "address, listening",
    [
        (LEARNER, "[::]:2222"),
        ("10.0.0.1:80", "[::]:80"),
        ("localhost:2222", "localhost:2222"),
        ("127.0.0.1:2222", "127.0.0.1:2222"),
        ("unix:/tmp/learner", "unix:/tmp/learner"),
    ],
)
def test_where_the_learner_listens(address: str, listening: str) -> None:
    assert Place("learner", address).listening_address == listening
