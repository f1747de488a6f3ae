"""The manifest for Kubernetes: what JobSet asks of it, Kubernetes' own schemas, and the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from gcp import cluster, run
from gcp.run import ClusterSettings
from seed_rl.command import parse
from seed_rl.errors import USER_ERROR_CODE

MANIFEST = Path(__file__).resolve().parents[2] / "gcp" / "jobset.yaml"
KUBERNETES = kubernetes_validate.latest_version()

# JobSet's v1alpha2, as far as the manifest goes; no other fields are known.
NAME = {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
JOBSET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "jobset.x-k8s.io/v1alpha2"},
        "kind": {"const": "JobSet"},
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": NAME}},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["replicatedJobs"],
            "properties": {
                "network": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"enableDNSHostnames": {"type": "boolean"}, "subdomain": NAME},
                },
                "successPolicy": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["operator"],
                    "properties": {
                        "operator": {"enum": ["All", "Any"]},
                        "targetReplicatedJobs": {"type": "array", "items": NAME},
                    },
                },
                "replicatedJobs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["name", "template"],
                        "properties": {
                            "name": NAME,
                            "replicas": {"type": "integer", "minimum": 1},
                            "template": {"type": "object", "required": ["spec"]},
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def manifest() -> dict[str, Any]:
    return yaml.safe_load(MANIFEST.read_text())


@pytest.fixture
def jobs(manifest: dict[str, Any]) -> dict[str, Any]:
    """The templates of its jobs, by name."""
    return {job["name"]: job["template"] for job in manifest["spec"]["replicatedJobs"]}


def as_job(template: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **template}


def test_jobset_accepts_it(manifest: dict[str, Any], jobs: dict[str, Any]) -> None:
    jsonschema.validate(manifest, JOBSET)
    assert set(manifest["spec"]["successPolicy"]["targetReplicatedJobs"]) <= jobs.keys()


def test_kubernetes_accepts_its_jobs(jobs: dict[str, Any]) -> None:
    for template in jobs.values():
        kubernetes_validate.validate(as_job(template), KUBERNETES, strict=True)
        pod = template["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        for rule in template["spec"]["podFailurePolicy"]["rules"]:
            if on_exit := rule.get("onExitCodes"):
                assert on_exit["containerName"] == container["name"]
                assert on_exit["values"] == [USER_ERROR_CODE]
        assert pod["restartPolicy"] == "Never"  # which a podFailurePolicy asks for


def test_the_check_finds_a_misspelt_field(jobs: dict[str, Any]) -> None:
    jobs["actors"]["spec"]["template"]["spec"]["containers"][0]["arguments"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(as_job(jobs["actors"]), KUBERNETES, strict=True)


def environment(template: dict[str, Any]) -> dict[str, str]:
    (container,) = template["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_every_machine_finds_its_part(manifest: dict[str, Any], jobs: dict[str, Any]) -> None:
    containers = [job["spec"]["template"]["spec"]["containers"][0] for job in jobs.values()]
    (arguments,) = {tuple(container["args"]) for container in containers}
    command = parse(arguments, run.USAGE, ClusterSettings)
    name, subdomain = manifest["metadata"]["name"], manifest["spec"]["network"]["subdomain"]
    address = f"{name}-learner-0-0.{subdomain}:2222"

    learner = cluster.find(environment(jobs["learner"]))
    assert (learner.role, learner.learner_address) == ("learner", address)
    machines = jobs["actors"]["spec"]["completions"]
    num_envs = machines * command.num_actors * command.envs_per_actor
    assert f"--num_envs={num_envs}" in run.learner_command(command, learner, [])

    tasks = []
    for index in range(machines):
        place = cluster.find({**environment(jobs["actors"]), "JOB_COMPLETION_INDEX": str(index)})
        assert (place.role, place.learner_address) == ("actor", address)
        for actor in run.actor_commands(command, place, []):
            tasks += [int(word.split("=")[1]) for word in actor if word.startswith("--task=")]
    assert tasks == list(range(machines * command.num_actors))
