"""The Dockerfiles keep the rules of dockerfile_lint, and the rules find what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docker.dockerfile_lint import installed, lint, parse

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKERFILES = sorted((REPOSITORY / "docker").glob("Dockerfile.*"))

CLEAN = """
# A comment
ARG DEBIAN=debian:12.9-slim
ARG RUN_IMAGE
FROM ${DEBIAN} AS build
COPY --chmod=755 here.txt there/
RUN apt-get update && apt-get install -y --no-install-recommends \\
      # for the build
      g++ libexample-dev \\
    && rm -rf /var/lib/apt/lists/*
FROM build AS more
FROM ${RUN_IMAGE}
USER root
RUN apt-get update && apt-get install -y --no-install-recommends libexample1 \\
    && rm -rf /var/lib/apt/lists/*
USER seed_rl
WORKDIR /seed_rl
COPY --from=build /product .
ENTRYPOINT ["python", "-u"]
"""


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "here.txt").touch()
    return tmp_path


def test_there_is_one_for_the_base_and_for_each_domain_with_an_engine():
    names = {file.name.removeprefix("Dockerfile.") for file in DOCKERFILES}
    assert names == {"base", "atari", "football", "dmlab"}


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_it_keeps_the_rules(file: Path):
    assert lint(file.read_text(), REPOSITORY) == []


def test_they_agree_on_arguments_with_defaults():
    defaults: dict[str, set[str]] = {}
    for file in DOCKERFILES:
        for name, default in parse(file.read_text()).arguments.items():
            if default is not None:
                defaults.setdefault(name, set()).add(default)
    assert all(len(values) == 1 for values in defaults.values()), defaults


def test_the_context_has_nothing_that_git_ignores():
    kept_out = (REPOSITORY / ".dockerignore").read_text().splitlines()
    for line in (REPOSITORY / ".gitignore").read_text().splitlines():
        if line and not line.startswith("#"):
            anywhere = "/" not in line.rstrip("/")
            assert ("**/" if anywhere else "") + line.strip("/") in kept_out


def test_the_entry_point_is_one_machine_of_a_cluster():
    run = parse((REPOSITORY / "docker" / "Dockerfile.base").read_text()).stages[-1]
    (entry_point,) = run.all("ENTRYPOINT")
    assert entry_point.text == '["/seed_rl/.venv/bin/python", "-u", "-m", "gcp.run"]'


def test_clean_file_has_no_problems(context):
    assert lint(CLEAN, context) == []


def test_packages_are_those_of_the_stage():
    build, _, run = parse(CLEAN).stages
    assert installed(build) == {"g++", "libexample-dev"}
    assert installed(run) == {"libexample1"}


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        ("debian:12.9-slim", "debian", "FROM ${DEBIAN}: no release's tag"),
        ("debian:12.9-slim", "debian:latest", "FROM ${DEBIAN}: no release's tag"),
        ("debian:12.9-slim", "debian:12-slim", "FROM ${DEBIAN}: no release's tag"),
        ("ARG RUN_IMAGE\n", "", "FROM ${RUN_IMAGE}: no such ARG"),
        ("FROM build AS", "FROM built AS", "FROM built: no release's tag, and no earlier stage"),
        ("apt-get update && ", "", "without update"),
        ("update && apt-get", "update\nRUN apt-get", "without update"),
        ("install -y", "install", "without -y"),
        ("--no-install-recommends", "", "without --no-install-recommends"),
        ("&& rm -rf /var/lib/apt/lists/*", "&& true", "leaves /var/lib/apt/lists"),
        ("&& rm -rf /var", "\nRUN rm -rf /var", "leaves /var/lib/apt/lists"),
        ("COPY --chmod", "ADD --chmod", "ADD --chmod"),
        ("RUN apt-get", "RUN sudo apt-get", "sudo: "),
        ('["python", "-u"]', "python -u", "ENTRYPOINT python -u: not in exec form"),
        ("USER seed_rl", "USER root:root", "the last USER is root"),
        ("USER seed_rl", "USER 0", "the last USER is root"),
        ("USER seed_rl", "", "the last USER is root"),
        ("WORKDIR /seed_rl", "WORKDIR seed_rl", "WORKDIR seed_rl: not absolute"),
        ("--from=build", "--from=later", "COPY --from=later: no earlier stage"),
        ("here.txt", "nowhere.txt", "COPY nowhere.txt: not in the context"),
        *(
            ("libexample1", package, f"{package}: nothing to ship")
            for package in ("g++", "g++-12", "gcc", "make", "cmake", "ninja-build", "bazel", "git")
        ),
        ("libexample1", "libexample1 libexample-dev", "libexample-dev: nothing to ship"),
        ("FROM ${RUN_IMAGE}", "FROM build", "g++: nothing to ship"),
    ],
)
def test_rule_finds_what_it_is_for(context, good, bad, problem):
    assert good in CLEAN
    problems = lint(CLEAN.replace(good, bad), context)
    assert any(problem in found for found in problems), problems


def test_a_released_images_user_is_root(context):
    text = "FROM debian:12.9-slim\nWORKDIR /seed_rl\n"
    assert lint(text, context) == ["no USER"]


def test_text_without_stages_is_none(context):
    assert lint("ARG A=b\n", context) == ["no FROM"]
