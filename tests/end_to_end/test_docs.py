"""What README and docs say works, as it stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import REPOSITORY, RUN_LOCAL, run, run_local, scalars

README = (REPOSITORY / "README.md").read_text()
TUTORIAL = (REPOSITORY / "docs" / "your_environment.md").read_text()
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
LINKED = [*PAGES, *sorted((REPOSITORY / "docs" / "results").glob("*.md"))]


def commands(page: str) -> Iterator[list[str]]:
    """The arguments of each run_local.sh in the page's blocks for the shell, but placeholders."""
    for block in re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in re.findall(r"^\./run_local\.sh (.*?)(?: *#.*)?$", block, re.MULTILINE):
            if not line.startswith("ENVIRONMENT"):
                yield line.split()


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with the tutorial's files, in which its commands have been run."""
    home = tmp_path_factory.mktemp("tutorial")
    blocks = re.findall(r"^```python title=(\S+)\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    for name, code in blocks:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(code)
    short = ["--total_environment_frames=20000", "--log_batch_frequency=1"]
    for environment, agent, *others in commands(TUTORIAL):
        run_local(home / agent, environment, agent, *others, *short, cwd=home)
    return home


@pytest.mark.parametrize("agent", ["vtrace", "r2d2"])
def test_tutorials_environment_trains(agent: str, tutorial: Path) -> None:
    by_tag = scalars(tutorial / agent)
    assert by_tag["training/steps"][-1].value > 3
    returns = [scalar.value for scalar in by_tag["training/return"]]
    lengths = [scalar.value for scalar in by_tag["training/length"]]
    assert returns == lengths  # CartPole gives a reward of 1 per step
    assert len(returns) > 10


@pytest.mark.parametrize("arguments", list(commands(README)), ids=" ".join)
def test_readmes_command_parses(arguments: list[str], tmp_path: Path) -> None:
    if "--help" in arguments:
        _, output = run(tmp_path / "log", RUN_LOCAL, *arguments, imports=False)
        assert "--total_environment_frames" in output
    else:
        run_local(tmp_path, *arguments, "--only_check_args")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_folders_that_a_page_names_are_there(page: Path, tutorial: Path) -> None:
    text = page.read_text()
    named = re.findall(r"`(?:\./)?([\w./]*(?:/|\.(?:py|sh|md|flags|proto)))`", text)
    assert len(named) > 5
    # A name may be short for one in the folder that the sentence is about.
    folders = [REPOSITORY / name for name in ("", "seed_rl", "agents", "atari", "gcp")]
    for name in named:
        places = [*folders, tutorial, tutorial / "vtrace"]
        assert any((place / name).exists() for place in places), f"{page.name} names {name}"


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
