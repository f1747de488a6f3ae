"""On the real engine."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from football.adapter import OldGymAdapter
from football.env import DOMAIN, NUM_ACTIONS, Football, FootballSettings, make_environments, spec
from seed_rl.environments import SCORE
from seed_rl.errors import UserError
from seed_rl.types import StepType
from tests.end_to_end.processes import REPOSITORY

CLOSE = "academy_empty_goal_close"
IDLE, RIGHT, SHOT = 0, 5, 12

# Prints what two environments show in steps of several episodes.
FINGERPRINT = """
import hashlib, sys
import numpy as np
from football.env import FootballSettings, make_environments
env = make_environments(FootballSettings(game="academy_3_vs_1_with_keeper"), [5, int(sys.argv[1])])
seen = [hashlib.sha256() for _ in range(2)]
step, ends = env.reset(), np.zeros(2, int)
for _ in range(200):
    for digest, observation in zip(seen, step.observation):
        digest.update(observation.tobytes())
    step = env.step(np.array([12, 12]))
    ends += step.step_type == 2
assert ends.min() > 1
print(*(digest.hexdigest() for digest in seen))
"""


def play(env: gymnasium.Env, action: int, limit: int = 4_000) -> tuple[list[float], Any]:
    """One episode of one action: its rewards, and its last step."""
    rewards = []
    for _ in range(limit):
        step = env.step(action)
        rewards.append(step[1])
        if step[2] or step[3]:
            return rewards, step
    raise AssertionError(f"no end in {limit} steps")


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_finds_no_fault() -> None:
    env = Football(FootballSettings(game=CLOSE))
    check_env(env, skip_render_check=True)
    check_env(env.unwrapped, skip_render_check=True)
    assert isinstance(env.unwrapped, OldGymAdapter)
    env.close()


@pytest.mark.parametrize(
    ("smm_size", "shape"), [("default", (72, 96)), ("medium", (90, 120)), ("large", (108, 144))]
)
def test_observations_fit_the_spec(smm_size: str, shape: tuple[int, int]) -> None:
    settings = FootballSettings(game=CLOSE, smm_size=smm_size)
    env = make_environments(settings, [0])
    observation = env.reset().observation
    env.close()
    assert spec(settings).observation.shape == (*shape, 1) == observation.shape[1:]
    assert spec(settings).observation.dtype == observation.dtype == np.uint16
    assert spec(settings).num_actions == NUM_ACTIONS
    assert spec(settings).has_score
    # Four equal minimaps at the start: their bits repeat in each half byte.
    assert observation.any()
    np.testing.assert_array_equal(observation, (observation & 0xF) * 0x1111)


def test_a_goal_ends_the_episode_and_counts_1() -> None:
    env = Football(FootballSettings(game=CLOSE))
    env.reset(seed=0)
    rewards, (_, _, terminated, truncated, info) = play(env, RIGHT)
    env.close()
    assert (sum(rewards), rewards[-1], info[SCORE]) == (1, 1, 1)
    assert (terminated, truncated) == (True, False)


def test_checkpoints_are_in_the_reward_and_not_in_the_score() -> None:
    settings = FootballSettings(game=CLOSE, reward_experiment="scoring,checkpoints")
    env = Football(settings)
    env.reset(seed=0)
    rewards, (*_, info) = play(env, RIGHT)
    env.close()
    assert sum(rewards) == pytest.approx(2)  # a goal and, at the latest with it, 10 x 0.1
    assert sum(reward > 0 for reward in rewards) > 2
    assert info[SCORE] == 1


def test_a_match_has_3001_steps_and_its_end_is_a_truncation() -> None:
    env = make_environments(FootballSettings(), [2])
    steps = [env.reset()]
    while steps[-1].step_type[0] != StepType.LAST:
        steps.append(env.step(np.array([IDLE])))
    after = env.step(np.array([IDLE]))
    env.close()
    assert len(steps) - 1 == 3_001
    assert all(step.discount[0] == 1 for step in steps)
    assert after.step_type[0] == StepType.FIRST


def fingerprints(seed: int) -> list[str]:
    finished = subprocess.run(
        [sys.executable, "-c", FINGERPRINT, str(seed)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout.split()[-2:]


def test_same_seed_same_episodes_in_two_processes() -> None:
    one, other = fingerprints(5), fingerprints(6)
    assert one[0] == other[0]  # whatever the environment beside it plays
    assert one[1] != other[1]
    assert one[0] == one[1]


def test_every_episode_has_a_seed_of_its_own() -> None:
    env = Football(FootballSettings(game="academy_3_vs_1_with_keeper"))

    def episode(**kwargs: Any) -> bytes:
        env.reset(**kwargs)
        return b"".join(env.step(SHOT)[0].tobytes() for _ in range(15))

    first, second, again = episode(seed=1), episode(), episode(seed=1)
    env.close()
    assert first == again
    assert first != second


def test_each_scenario_of_a_list_is_a_task() -> None:
    tasks = DOMAIN.tasks(FootballSettings(game=f"5_vs_5,{CLOSE}", smm_size="medium"))
    assert tasks == {
        name: FootballSettings(game=name, smm_size="medium") for name in ("5_vs_5", CLOSE)
    }


def test_unknown_scenario() -> None:
    for function in (spec, lambda settings: make_environments(settings, [0])):
        with pytest.raises(UserError, match="--game=academy"):
            function(FootballSettings(game="academy"))
