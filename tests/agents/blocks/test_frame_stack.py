"""Frame stacking against Gymnasium's own, on real Atari frames of episodes that end on the way."""

from __future__ import annotations

import functools

import ale_py
import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.blocks.frame_stack import initial_history, stack_frames

STACK_SIZES = (1, 2, 3, 4)
LENGTH, EPISODE_STEPS = 20, 7


@functools.cache
def reference(stack_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gymnasium's stacks uint8 [T, 2, H, W, stack_size] of two games, and is_first bool [T, 2]."""
    gymnasium.register_envs(ale_py)
    games = [_play(stack_size, seed) for seed in (1, 2)]
    stacks, is_first = (np.stack(each, axis=1) for each in zip(*games, strict=True))
    return stacks, is_first


def _play(stack_size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    env = gymnasium.make("ALE/Breakout-v5", frameskip=1, max_episode_steps=EPISODE_STEPS + seed)
    env = gymnasium.wrappers.AtariPreprocessing(env, noop_max=10)
    env = gymnasium.wrappers.FrameStackObservation(env, stack_size)
    actions = np.random.default_rng(seed)
    stacks, is_first, ended = [env.reset(seed=seed)[0]], [True], False
    while len(stacks) < LENGTH:
        is_first.append(ended)
        if ended:
            observation, ended = env.reset()[0], False
        else:
            observation, _, terminated, truncated, _ = env.step(actions.choice([1, 2, 3]))
            ended = terminated or truncated
        stacks.append(observation)
    env.close()
    return np.moveaxis(np.array(stacks), 1, -1), np.array(is_first)


def frames_of(stacks: np.ndarray) -> tf.Tensor:
    """The newest frame of each stack."""
    return tf.constant(stacks[..., -1])


def stack(
    stacks: np.ndarray, is_first: np.ndarray, stack_size: int, sizes: list[int]
) -> np.ndarray:
    """Stacks the frames in unrolls of the given sizes, handing the history on."""
    frames = frames_of(stacks)
    history = initial_history(frames.shape[1], frames.shape[2:])
    results, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        result, history = stack_frames(frames[part], is_first[part], history, stack_size)
        results.append(result)
        start += size
    return np.concatenate(results)


@pytest.mark.parametrize("stack_size", STACK_SIZES)
@pytest.mark.parametrize(
    "sizes", [[LENGTH], [1] * LENGTH, [2] * 10, [3, 1, 16]], ids=["whole", "steps", "twos", "mixed"]
)
def test_equals_gymnasium(stack_size: int, sizes: list[int]) -> None:
    stacks, is_first = reference(stack_size)
    assert is_first.sum() >= 4 and np.ptp(stacks[..., 0]) > 0
    np.testing.assert_array_equal(stack(stacks, is_first, stack_size, sizes), stacks)


@pytest.mark.parametrize("stack_size", STACK_SIZES)
def test_history_from_before_an_episode_is_not_seen(stack_size: int) -> None:
    stacks, is_first = reference(stack_size)
    assert is_first[0].all()
    frames = frames_of(stacks)
    garbage = tf.fill([2, *frames.shape[2:]], np.int32(-123456789))
    result, _ = stack_frames(frames, is_first, garbage, stack_size)
    np.testing.assert_array_equal(result, stacks)
