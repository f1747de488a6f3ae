from typing import Any

import gymnasium
import numpy as np
import pytest

from seed_rl.environments import RETURN_ENDED, SCORE, GymnasiumVector, VectorEnvironment, vectorize
from seed_rl.types import StepType, TimeStep

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


class Counter(gymnasium.Env):
    """Observes and pays the number of steps. Ends after `length` of them; loses a life at 2."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3, *, terminates: bool = True, has_lives: bool = False):
        self._length, self._terminates, self._has_lives = length, terminates, has_lives

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._count = 0
        self.start = self.np_random.random()
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._count += 1
        is_over = self._count == self._length
        info = {RETURN_ENDED: self._count == 2} if self._has_lives else {}
        terminated, truncated = is_over and self._terminates, is_over and not self._terminates
        return self._observation(), float(self._count), terminated, truncated, info

    def _observation(self) -> np.ndarray:
        return np.full(1, self._count, np.float32)


def play(env: VectorEnvironment, num_steps: int) -> TimeStep:
    """Reset and `num_steps` steps, as a TimeStep of arrays [T, N, ...]."""
    actions = np.ones(2, np.int32)
    steps = [env.reset(), *(env.step(actions) for _ in range(num_steps))]
    return TimeStep(*(np.stack(field) for field in zip(*steps, strict=True)))


@pytest.mark.parametrize(("terminates", "final_discount"), [(True, 0), (False, 1)])
def test_episode_ends_with_its_true_final_step(terminates: bool, final_discount: int) -> None:
    steps = play(vectorize(lambda: Counter(terminates=terminates), [0, 1]), 6)
    for n in range(2):
        assert steps.step_type[:, n].tolist() == [FIRST, MID, MID, LAST, FIRST, MID, MID]
        assert steps.reward[:, n].tolist() == [0, 1, 2, 3, 0, 1, 2]
        assert steps.discount[:, n].tolist() == [1, 1, 1, final_discount, 1, 1, 1]
        assert steps.observation[:, n, 0].tolist() == [0, 1, 2, 3, 0, 1, 2]


def test_dtypes() -> None:
    env = vectorize(Counter, [0, 1])
    for step in (env.reset(), env.step(np.zeros(2, np.int32))):
        assert step.step_type.dtype == np.int32
        assert step.reward.dtype == step.discount.dtype == step.observation.dtype == np.float32


def test_environments_end_their_episodes_independently() -> None:
    lengths = iter([2, 3])
    steps = play(vectorize(lambda: Counter(next(lengths)), [0, 1]), 4)
    assert steps.step_type[:, 0].tolist() == [FIRST, MID, LAST, FIRST, MID]
    assert steps.step_type[:, 1].tolist() == [FIRST, MID, MID, LAST, FIRST]


def test_lost_life_ends_the_return_only() -> None:
    steps = play(vectorize(lambda: Counter(4, has_lives=True), [0, 1]), 5)
    assert steps.step_type[:, 0].tolist() == [FIRST, MID, MID, MID, LAST, FIRST]
    assert steps.discount[:, 0].tolist() == [1, 1, 0, 1, 0, 1]


def test_reset_in_the_middle_starts_new_episodes() -> None:
    env = vectorize(lambda: Counter(2), [0, 1])
    play(env, 2)  # the last step was LAST: a step would be FIRST now
    steps = play(env, 1)
    assert steps.step_type[:, 0].tolist() == [FIRST, MID]


def test_seeds_count_once() -> None:
    def starts(seeds: list[int]) -> list[list[float]]:
        counters = [Counter(), Counter()]
        rest = iter(counters)
        env = vectorize(lambda: next(rest), seeds)
        return [[c.start for c in counters] for _ in range(2) if env.reset()]

    first, second = starts([5, 6])
    assert starts([5, 6]) == [first, second]
    assert starts([6, 5])[0] == first[::-1]
    assert len({*first, *second}) == 4


def test_wrong_actions_are_refused() -> None:
    env = vectorize(Counter, [0, 1])
    env.reset()
    for actions in ([0, 2], [-1, 0], [0]):
        with pytest.raises(ValueError, match=r"actions: expected one of MultiDiscrete\(\[2 2\]\)"):
            env.step(np.array(actions, np.int32))


def test_wrong_number_of_seeds_is_refused() -> None:
    env = gymnasium.vector.SyncVectorEnv([Counter, Counter])
    with pytest.raises(ValueError, match="seeds: expected 2, one per environment, got 3"):
        GymnasiumVector(env, [1, 2, 3])


def test_other_autoreset_modes_are_refused() -> None:
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.vector.SyncVectorEnv([Counter], autoreset_mode=mode)
    with pytest.raises(ValueError, match="NEXT_STEP"):
        GymnasiumVector(env, [1])


def test_scores_come_from_the_info_and_are_0_at_first() -> None:
    class Shaped(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
            return np.zeros(1, np.float32), {}

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
            return np.zeros(1, np.float32), 0.5, bool(action), False, {SCORE: 3 * action}

    env = vectorize(Shaped, [0, 1], has_score=True)
    assert env.reset().score.tolist() == [0, 0]
    step = env.step(np.array([1, 0]))
    assert (step.score.tolist(), step.reward.tolist()) == ([3, 0], [0.5, 0.5])
    assert step.score.dtype == np.float32
    assert env.step(np.array([1, 1])).score.tolist() == [0, 3]
    assert env.step(np.array([0, 0])).score.tolist() == [0, 0]
    assert vectorize(Shaped, [0]).reset().score == ()
