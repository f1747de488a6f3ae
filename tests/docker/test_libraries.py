"""The run stages install all that the compiled parts of this machine are linked with."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.docker.dockerfile_lint import installed, parse

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = REPOSITORY / ".venv"

RELEASE = Path("/etc/debian_version")
pytestmark = pytest.mark.skipif(
    not RELEASE.exists() or not RELEASE.read_text().startswith("12."),
    reason="the images are Debian 12, whose packages this machine does not have",
)


def run_packages(*domains: str) -> set[str]:
    """What the last stages of these Dockerfiles install."""
    files = [REPOSITORY / "docker" / f"Dockerfile.{domain}" for domain in domains]
    return set().union(*(installed(parse(file.read_text()).stages[-1]) for file in files))


def system_libraries(compiled: Path) -> Iterator[str]:
    """The files outside the environment that it is linked with."""
    listing = subprocess.run(["ldd", compiled], capture_output=True, text=True, check=True).stdout
    assert "not found" not in listing
    for path in re.findall(r"=> (/\S+)", listing):
        if not Path(path).is_relative_to(REPOSITORY):
            yield path


def packages_of(files: Iterable[str]) -> set[str]:
    # Where /lib is a link to /usr/lib, a package may know its file by either name.
    names = [name for file in files for name in (file, f"/usr{file}")]
    search = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True)
    found = [line.split(":") for line in search.stdout.splitlines()]
    assert len(found) == len(names) // 2, search.stderr  # each by one of its names
    return {package for package, *_ in found}


@functools.cache
def dependencies() -> dict[str, set[str]]:
    """Of each package of this machine, the packages that it depends on."""
    form = "${Package}\t${Pre-Depends}, ${Depends}\n"
    listing = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True)
    lines = (line.split("\t") for line in listing.stdout.splitlines())
    # Of alternatives apt takes the first.
    first = re.compile(r"(?:^|,)\s*([a-z0-9][a-z0-9+.-]+)")
    return {package: set(first.findall(needs)) for package, needs in lines}


def with_dependencies(packages: set[str]) -> set[str]:
    found: set[str] = set()
    todo = set(packages)
    while todo:
        found |= todo
        todo = set().union(*(dependencies().get(package, set()) for package in todo)) - found
    return found


def missing(compiled: Path, packages: set[str]) -> set[str]:
    """Of the packages that `compiled` is linked with, those that the given ones do not bring."""
    return packages_of(system_libraries(compiled)) - with_dependencies(packages)


OP = REPOSITORY / "seed_rl" / "grpc" / "libseed_rl_transport.so"


def test_base_has_the_libraries_of_the_op():
    assert missing(OP, run_packages("base")) == set()


def test_missing_libraries_are_found():
    assert "libgrpc++1.51" in missing(OP, run_packages("base") - {"libgrpc++1.51"})


def test_football_has_the_libraries_of_its_engine():
    engine = ENVIRONMENT.glob("lib/python3*/site-packages/gfootball_engine/_gameplayfootball.so")
    for compiled in engine:
        assert missing(compiled, run_packages("base", "football")) == set()
        return
    pytest.skip("the football engine is not installed: ./setup.sh --domain=football")
