"""docker/build.sh, docker/push.sh and the names that they give to images."""

import shutil

import pytest

BUILD, PUSH = "docker/build.sh", "docker/push.sh"
REGISTRY = "europe-west4-docker.pkg.dev/my-project/seed-rl"
TO_REGISTRY = f"--repository={REGISTRY}"


def test_it_builds_the_base_and_then_the_domain(machine):
    assert machine.output(BUILD, "atari", "--flavour=tpu", "--tag=v1") == "seed_rl/atari-tpu:v1\n"
    root = str(machine.checkout)
    base = ["build", f"--file={root}/docker/Dockerfile.base"]
    accelerator = "--build-arg=SEED_RL_ACCELERATOR=tpu"
    assert [sorted(call) for call in machine.calls("build")] == [
        sorted([*base, "--tag=seed_rl/build-tpu:v1", "--target=build", accelerator, root]),
        sorted([*base, "--tag=seed_rl/run-tpu:v1", "--target=run", accelerator, root]),
        sorted(
            [
                "build",
                "--tag=seed_rl/atari-tpu:v1",
                f"--file={root}/docker/Dockerfile.atari",
                "--build-arg=BUILD_IMAGE=seed_rl/build-tpu:v1",
                "--build-arg=RUN_IMAGE=seed_rl/run-tpu:v1",
                root,
            ]
        ),
    ]


@pytest.mark.parametrize(
    ("nvidia_smi", "accelerator", "flavours"),
    [
        ("exit 1", "", ["cpu", "actor"]),
        ("echo 'GPU 0: some'", "", ["gpu", "actor"]),
        ("exit 1", "tpu", ["tpu", "actor"]),
        ("exit 1", "none", ["actor"]),
    ],
)
def test_flavours_by_default_are_this_machines_and_actors(
    machine, nvidia_smi, accelerator, flavours
):
    machine.install("nvidia-smi", nvidia_smi)
    names = machine.output(BUILD, "dmlab", "--tag=v1", SEED_RL_ACCELERATOR=accelerator).split()
    assert names == [f"seed_rl/dmlab-{flavour}:v1" for flavour in flavours]
    assert "--build-arg=SEED_RL_ACCELERATOR=none" in machine.calls("build")[-3]


def default_tag(machine):
    return machine.output(BUILD, "atari", "--flavour=cpu").strip().partition(":")[2]


def test_tag_by_default_is_the_commit_and_tells_of_changes(machine):
    commit = machine.commit()
    assert default_tag(machine) == commit
    (machine.checkout / "untracked").touch()  # would be in the image
    assert default_tag(machine) == f"{commit}-changed"
    (machine.checkout / "untracked").unlink()
    (machine.checkout / "setup.sh").open("a").write("\n")
    assert default_tag(machine) == f"{commit}-changed"


def test_tag_without_a_commit_is_unknown(machine):
    assert default_tag(machine) == "unknown"


def test_tag_is_not_the_commit_of_another_checkout_around_this_one(machine):
    machine.commit()
    outer = machine.checkout.parent
    shutil.move(machine.checkout / ".git", outer)
    assert default_tag(machine) == "unknown"


def test_it_pushes_what_was_built(machine):
    machine.variables["BUILT"] = "seed_rl/football-gpu:v1 seed_rl/football-actor:v1"
    pushed = [f"{REGISTRY}/football-{flavour}:v1" for flavour in ("gpu", "actor")]
    options = [TO_REGISTRY, "--flavour=gpu", "--flavour=actor", "--tag=v1"]
    assert machine.output(PUSH, "football", *options).split() == pushed
    assert machine.calls()[3:] == [
        ["tag", "seed_rl/football-gpu:v1", pushed[0]],
        ["push", pushed[0]],
        ["tag", "seed_rl/football-actor:v1", pushed[1]],
        ["push", pushed[1]],
    ]


def test_it_pushes_nothing_where_an_image_is_missing(machine):
    machine.variables["BUILT"] = "seed_rl/atari-cpu:v1"
    assert machine.refusal(PUSH, "atari", TO_REGISTRY, "--tag=v1") == (
        "docker/push.sh: seed_rl/atari-actor:v1: expected an image that is built; build it:"
        " docker/build.sh atari --flavour=actor --tag=v1"
    )
    assert machine.calls("tag") == machine.calls("push") == []


@pytest.mark.parametrize("script", [BUILD, PUSH])
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "DOMAIN: expected one of atari dmlab football, got ''."),
        (["base"], "DOMAIN: expected one of atari dmlab football, got 'base'."),
        (["my 'own'"], "DOMAIN: expected one of atari dmlab football, got 'my 'own''."),
        (["atari", "dmlab"], "DOMAIN: expected one, got 'atari' and 'dmlab'."),
        (
            ["atari", "--flavour=npu"],
            "--flavour: expected one of cpu gpu tpu actor, got 'npu'.",
        ),
        (
            ["atari", "--tag=a b"],
            "--tag: expected letters, digits, '_', '.' and '-', at most 128, got 'a b'.",
        ),
        (["atari", "--flavor=cpu"], "expected a flag of {script} --help, got '--flavor=cpu'."),
    ],
)
def test_wrong_arguments_are_one_sentence(machine, script, arguments, complaint):
    refusal = machine.refusal(script, *arguments)
    assert refusal == f"{script}: {complaint.format(script=script)}"
    assert machine.calls() == []


@pytest.mark.parametrize(
    "given", ["", "gcr.io/my-project", "europe-docker.pkg.dev/my-project", f"{REGISTRY}/"]
)
def test_wrong_repository_is_one_sentence(machine, given):
    expected = "expected REGION-docker.pkg.dev/PROJECT/REPOSITORY, got"
    refusal = machine.refusal(PUSH, "atari", f"--repository={given}")
    assert refusal == f"docker/push.sh: --repository: {expected} '{given}'."


@pytest.mark.parametrize(
    ("script", "fails", "complaint"),
    [
        (
            BUILD,
            "version",
            "docker: expected an engine that answers, got: no luck;"
            " start it, as with: sudo systemctl start docker",
        ),
        (BUILD, "build", "docker could not build seed_rl/build-cpu:v1; its output is above."),
        (
            PUSH,
            "version",
            "docker: expected an engine that answers, got: no luck;"
            " start it, as with: sudo systemctl start docker",
        ),
        (
            PUSH,
            "tag",
            f"docker could not tag seed_rl/atari-cpu:v1 as {REGISTRY}/atari-cpu:v1; its output is"
            " above.",
        ),
        (
            PUSH,
            "push",
            f"docker could not push {REGISTRY}/atari-cpu:v1; its output is above (to log in:"
            " gcloud auth configure-docker europe-west4-docker.pkg.dev).",
        ),
    ],
)
def test_failure_of_docker_is_one_sentence(machine, script, fails, complaint):
    machine.variables.update(FAILS=fails, BUILT="seed_rl/atari-cpu:v1")
    repository = [TO_REGISTRY] if script == PUSH else []
    arguments = ["atari", *repository, "--flavour=cpu", "--tag=v1"]
    assert machine.refusal(script, *arguments) == f"{script}: {complaint}"


def test_machine_without_docker_is_one_sentence(machine):
    machine.hide("docker")
    assert machine.refusal(BUILD, "atari") == (
        "docker/build.sh: docker: expected the program on the path, found none;"
        " see https://docs.docker.com/engine/install."
    )


def test_unknown_accelerator_is_setups_sentence(machine):
    refusal = machine.refusal(BUILD, "atari", SEED_RL_ACCELERATOR="npu")
    assert refusal == "setup: SEED_RL_ACCELERATOR: expected cpu, gpu, tpu or none, got 'npu'."
    assert machine.calls() == []


@pytest.mark.parametrize("script", [BUILD, PUSH])
def test_it_explains_itself(machine, script):
    assert machine.output(script, "atari", "--help").startswith(f"Usage: {script} DOMAIN ")
    assert machine.calls() == []
