"""The Dockerfiles' recipe for actors works from an empty Debian on; see debian_tree."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcp.run import USAGE
from tests.docker import debian_tree
from tests.docker.debian_tree import Image
from tests.docker.dockerfile_lint import parse

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = REPOSITORY / "docker" / "Dockerfile.base"
MODULES = "atari.env, football.scenarios, seed_rl.actor, seed_rl.grpc.client, gcp.run"
UNKNOWN = ("ADD a /a", "RUN --network=none a", "COPY --link a /", "COPY a /b", "COPY *.sh /")

pytestmark = pytest.mark.timeout(900)  # it downloads some 200 MB of packages


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if reason := debian_tree.obstacle():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="seed_rl_debian_") as folder:
        yield actor_image(Path(folder))


def actor_image(folder: Path) -> Image:
    released = parse(BASE.read_text()).arguments["DEBIAN"]
    assert released is not None and released.startswith("debian:12.")
    images = {released: debian_tree.debian(folder / "debian")}
    context = debian_tree.context(REPOSITORY, folder / "context")
    base = debian_tree.build(BASE, images, context, folder, SEED_RL_ACCELERATOR="none")
    names = {"BUILD_IMAGE": "build", "RUN_IMAGE": "run"}
    return debian_tree.build(BASE.with_suffix(".atari"), base, context, folder, **names)[""]


def run(image: Image, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As clusters do that give each container a number of their own."""
    return image.run(*command, user=12345, HOME="/tmp", **variables)


def test_actors_find_their_modules_without_tensorflow(image):
    script = f"import {MODULES}, importlib.util; print(importlib.util.find_spec('tensorflow'))"
    finished = run(image, image.entry_point[0], "-c", script)
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.endswith("None\n")


def test_no_compiler_is_shipped(image):
    script = "for name in sh gcc g++ cmake make; do command -v $name; done"
    assert run(image, "/bin/sh", "-c", script).stdout == "/usr/bin/sh\n"


def test_the_entry_point_tells_its_usage(image):
    finished = run(image, *image.entry_point)
    assert finished.returncode == 1
    assert USAGE in finished.stdout


def test_an_actor_gives_up_on_an_absent_learner(image):
    place = {"SEED_RL_ROLE": "actor", "SEED_RL_LEARNER_ADDRESS": "127.0.0.1:1"}
    command = ["catch", "vtrace", "1", "1", "--connection_timeout_secs=1"]
    finished = run(image, *image.entry_point, *command, **place)
    assert finished.returncode == 1
    assert "no server answered" in finished.stdout


@pytest.mark.parametrize("instruction", UNKNOWN)
def test_unknown_instructions_are_errors(tmp_path, instruction):
    (tmp_path / "Dockerfile").write_text(f"FROM empty AS made\n{instruction}\n")
    images = {"empty": Image(tmp_path / "empty")}
    images["empty"].tree.mkdir()
    with pytest.raises(NotImplementedError, match=instruction.partition(" ")[0]):
        debian_tree.build(tmp_path / "Dockerfile", images, tmp_path, tmp_path)
