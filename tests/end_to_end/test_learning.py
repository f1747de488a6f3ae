"""Both agents learn Catch from nothing, and what they have learnt can be taken elsewhere."""

import re
import sys
from pathlib import Path

import pytest

from tests.end_to_end.processes import REPOSITORY, run, run_local, scalars

NEARLY_BEST = 0.9  # of 1; random play has -0.6
FRAMES = {"vtrace": 100_000, "r2d2": 120_000}
EARLY = 64  # episodes; too few to have learnt from


@pytest.fixture(scope="module", params=FRAMES)
def agent(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def logdir(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with the default flags of learning and two environments for evaluation."""
    logdir = tmp_path_factory.mktemp(agent)
    length = f"--total_environment_frames={FRAMES[agent]}"
    flags = ["--num_eval_envs=2", "--log_episode_frequency=1", length]
    run_local(logdir, "catch", agent, "2", *flags)
    return logdir


def test_evaluation_reaches_nearly_the_best_return(logdir: Path) -> None:
    assert scalars(logdir)["evaluation/mean_return"][-1].value >= NEARLY_BEST


def test_training_returns_get_better(logdir: Path, agent: str) -> None:
    returns = scalars(logdir)["training/mean_return"]
    assert returns[EARLY].value < 0
    # R2D2's training environments explore to the end.
    assert returns[-1].value >= (NEARLY_BEST if agent == "vtrace" else 0.5)


def test_episodes_of_both_kinds_are_in_the_summaries(logdir: Path) -> None:
    by_tag = scalars(logdir)
    for kind in "training", "evaluation":
        assert {length.value for length in by_tag[f"{kind}/length"]} == {9.0}
        assert {outcome.value for outcome in by_tag[f"{kind}/return"]} == {-1.0, 1.0}
        assert len(by_tag[f"{kind}/return"]) == len(by_tag[f"{kind}/length"]) > EARLY


def test_exported_policy_plays_without_this_projects_code(logdir: Path, tmp_path: Path) -> None:
    script = Path(__file__).with_name("play_catch.py")
    # -I: no PYTHONPATH, and neither the current directory nor the script's in the search path.
    command = [sys.executable, "-I", str(script), str(logdir / "policy"), str(REPOSITORY)]
    code, output = run(tmp_path / "play.log", *command, cwd=tmp_path, imports=False)
    assert code == 0, output
    (mean_return,) = re.findall(r"mean return (\S+)", output)
    assert float(mean_return) >= NEARLY_BEST
