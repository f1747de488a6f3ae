import warnings
from collections.abc import Callable

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from catch.env import DOMAIN, Catch, CatchSettings
from seed_rl.types import ArraySpec, StepType


def play_episode(
    env: Catch, policy: Callable[[np.ndarray], int], seed: int | None = None
) -> tuple[list[np.ndarray], list[float]]:
    """Plays policy(board) -> action; returns all boards and rewards."""
    board, _ = env.reset(seed=seed)
    boards, rewards, terminated = [board], [], False
    while not terminated:
        board, reward, terminated, truncated, _ = env.step(policy(board))
        assert not truncated
        boards.append(board)
        rewards.append(reward)
    return boards, rewards


def towards_the_ball(board: np.ndarray) -> int:
    row = np.flatnonzero(board[:-1].any(axis=1))[0]
    ball, paddle = board[row].argmax(), board[-1].argmax()
    return 1 + int(np.sign(int(ball) - int(paddle)))


def away_from_the_ball(board: np.ndarray) -> int:
    towards = towards_the_ball(board)
    return 2 if towards == 1 else 2 - towards


@pytest.mark.parametrize("shape", [(10, 5), (4, 7), (2, 1)])
def test_is_a_gymnasium_environment(shape: tuple[int, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*env.spec.*")  # it has no registered id
        warnings.filterwarnings("ignore", message=".*render modes.*")
        check_env(Catch(CatchSettings(*shape)), skip_render_check=True)


def test_best_play_returns_1_from_every_start() -> None:
    env = Catch(CatchSettings())
    columns = set()
    for seed in range(40):
        boards, rewards = play_episode(env, towards_the_ball, seed)
        assert rewards == [0.0] * 8 + [1.0]
        columns.add(int(boards[0][0].argmax()))
    assert columns == set(range(5))


def test_fleeing_returns_minus_1() -> None:
    assert play_episode(Catch(CatchSettings()), away_from_the_ball, seed=1)[1] == [0.0] * 8 + [-1.0]


def test_random_play_has_its_closed_form_mean() -> None:
    env, rng = Catch(CatchSettings()), np.random.default_rng(0)
    env.reset(seed=0)
    returns = [sum(play_episode(env, lambda _: int(rng.integers(3)))[1]) for _ in range(2_000)]
    assert np.mean(returns) == pytest.approx(2 / 5 - 1, abs=4 * 0.8 / np.sqrt(len(returns)))


def test_boards_show_ball_and_paddle() -> None:
    boards, _ = play_episode(Catch(CatchSettings()), lambda _: 0, seed=3)
    assert len(boards) == 10
    for time, board in enumerate(boards):
        assert board.dtype == np.uint8
        assert board.shape == (10, 5)
        assert set(np.unique(board)) == {0, 255}
        assert board[time].any()
        assert board[-1, max(2 - time, 0)] == 255


def test_domain() -> None:
    settings = CatchSettings(rows=3, columns=6)
    spec = DOMAIN.spec(settings)
    assert spec.observation == ArraySpec.of((3, 6), np.uint8)
    assert (spec.num_actions, spec.frames_per_step) == (3, 1)

    env = DOMAIN.make_environments(settings, [7, 8])
    steps = [env.reset(), *(env.step(np.ones(2, np.int32)) for _ in range(3))]
    assert [step.step_type[0] for step in steps] == [
        StepType.FIRST,
        StepType.MID,
        StepType.LAST,
        StepType.FIRST,
    ]
    assert all(step.observation.shape == (2, 3, 6) for step in steps)
    assert steps[2].discount.tolist() == [0, 0]
    for n, seed in enumerate([7, 8]):
        board, _ = Catch(settings).reset(seed=seed)
        np.testing.assert_array_equal(steps[0].observation[n], board)
