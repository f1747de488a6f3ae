from collections.abc import Sequence

import ale_py
import gymnasium
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from gymnasium.wrappers import AtariPreprocessing

from atari.env import DOMAIN, AtariSettings, make_environments, spec
from atari.games import ATARI_57, rom_id
from seed_rl.errors import UserError
from seed_rl.types import ArraySpec, StepType, TimeStep

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


def play(settings: AtariSettings, seeds: Sequence[int], num_steps: int) -> TimeStep:
    """Reset and `num_steps` random steps, as a TimeStep of arrays [T, N, ...]."""
    rng, num_actions = np.random.default_rng(0), spec(settings).num_actions
    env = make_environments(settings, seeds)
    steps = [env.reset()]
    for _ in range(num_steps):
        steps.append(env.step(rng.integers(0, num_actions, len(seeds), dtype=np.int32)))
    env.close()
    return TimeStep(*(np.stack(field) for field in zip(*steps, strict=True)))


def assert_equal(one: TimeStep, other: TimeStep) -> None:
    for field, other_field in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(field, other_field)


@pytest.mark.parametrize(
    ("game", "num_actions"),
    [("Pong", 6), ("Breakout", 4), ("MsPacman", 9), ("Freeway", 3), ("Seaquest", 18)],
)
def test_spec(game: str, num_actions: int) -> None:
    minimal = AtariSettings(game=game)
    assert spec(minimal).observation == ArraySpec.of((84, 84), np.uint8)
    assert spec(minimal).num_actions == num_actions
    assert spec(minimal).frames_per_step == 4
    assert spec(AtariSettings(game=game, full_action_space=True)).num_actions == 18
    assert spec(AtariSettings(game=game, num_action_repeats=2)).frames_per_step == 2


def test_button_is_ignored_where_the_engine_has_none() -> None:
    """ALE knows 9 of the 18 actions in Skiing."""
    settings = AtariSettings(game="Skiing", full_action_space=True, max_random_noops=0)
    assert spec(settings).num_actions == 18
    env = make_environments(settings, [0, 0])
    env.reset()
    right_fire, right = ale_py.Action.RIGHTFIRE.value, ale_py.Action.RIGHT.value
    for _ in range(30):
        observation = env.step(np.array([right_fire, right], np.int32)).observation
        np.testing.assert_array_equal(observation[0], observation[1])
    for _ in range(10):
        observation = env.step(np.array([ale_py.Action.LEFT.value, right], np.int32)).observation
    assert (observation[0] != observation[1]).any()
    env.close()


@pytest.mark.parametrize("full_action_space", [False, True])
def test_environments_take_the_actions_of_their_spec(full_action_space: bool) -> None:
    settings = AtariSettings(full_action_space=full_action_space)
    env = make_environments(settings, [0])
    env.reset()
    num_actions = spec(settings).num_actions
    for action in range(num_actions):
        env.step(np.array([action], np.int32))
    with pytest.raises(ValueError, match="actions"):
        env.step(np.array([num_actions], np.int32))


def test_time_steps_fit_the_spec() -> None:
    steps = play(AtariSettings(), [0, 1, 2], 2)
    assert steps.observation.shape == (3, 3, 84, 84)
    assert steps.observation.dtype == np.uint8
    assert steps.step_type.dtype == np.int32
    assert steps.reward.dtype == steps.discount.dtype == np.float32


def test_unknown_game() -> None:
    for function in (spec, lambda settings: make_environments(settings, [0])):
        with pytest.raises(UserError, match=r"--game=Pongg: .*Pong"):
            function(AtariSettings(game="Pongg"))


@pytest.mark.parametrize("game", ATARI_57)
def test_every_game_starts_and_steps(game: str) -> None:
    steps = play(AtariSettings(game=game, max_random_noops=0), [0], 1)
    assert steps.step_type[:, 0].tolist() == [FIRST, MID]


def play_gymnasium(game: str, num_steps: int, max_episode_frames: int) -> TimeStep:
    """`play` of one environment by Gymnasium's own parts."""
    gymnasium.register_envs(ale_py)
    env = gymnasium.make(
        f"ALE/{game}-v5",
        frameskip=1,
        repeat_action_probability=0.0,
        max_num_frames_per_episode=max_episode_frames,
    )
    env = AtariPreprocessing(env, noop_max=0, frame_skip=4)
    rng, step_type = np.random.default_rng(0), FIRST
    steps = [(FIRST, 0.0, 1.0, env.reset()[0])]
    for _ in range(num_steps):
        action = rng.integers(0, env.action_space.n, 1, dtype=np.int32)[0]
        if step_type == LAST:
            steps.append((FIRST, 0.0, 1.0, env.reset()[0]))
        else:
            observation, reward, terminated, truncated, _ = env.step(action)
            kind = LAST if terminated or truncated else MID
            steps.append((kind, reward, 1.0 - terminated, observation))
        step_type = steps[-1][0]
    return TimeStep(*(np.stack(field)[:, None] for field in zip(*steps, strict=True)))


@pytest.mark.parametrize(
    ("game", "max_episode_frames", "num_steps"),
    [
        ("Breakout", 108_000, 450),  # terminates twice
        ("MsPacman", 450, 250),  # is truncated twice, in the middle of a step
    ],
)
def test_equals_gymnasium(game: str, max_episode_frames: int, num_steps: int) -> None:
    settings = AtariSettings(game=game, max_random_noops=0, max_episode_frames=max_episode_frames)
    steps = play(settings, [0], num_steps)
    reference = play_gymnasium(game, num_steps, max_episode_frames)
    assert_equal(steps, reference)
    assert (steps.step_type == LAST).sum() == 2
    assert steps.reward.any()


def test_time_limit_cuts_off_without_ending_the_return() -> None:
    settings = AtariSettings(max_random_noops=0, max_episode_frames=40)
    steps = play(settings, [0, 1], 13)
    for n in range(2):
        assert steps.step_type[:, n].tolist() == [FIRST, *[MID] * 9, LAST, FIRST, MID, MID]
    assert (steps.discount == 1).all()
    assert (steps.reward[11] == 0).all()

    endless = play(AtariSettings(max_random_noops=0), [0, 1], 13)
    np.testing.assert_array_equal(steps.observation[:10], endless.observation[:10])
    assert (steps.observation[10] != steps.observation[0]).any()
    np.testing.assert_array_equal(steps.observation[11], steps.observation[0])


def lost_lives(game: str, num_steps: int) -> np.ndarray:
    """Where ALE's counter falls: bool [T], under the actions of `play` for one environment."""
    env = AtariVectorEnv(
        rom_id(game), 1, stack_num=1, noop_max=1, use_fire_reset=False, reward_clipping=False
    )
    rng = np.random.default_rng(0)
    lives = [env.reset(seed=np.array([0]))[1]["lives"][0]]
    for _ in range(num_steps):
        action = rng.integers(0, env.single_action_space.n, 1, dtype=np.int32)
        lives.append(env.step(action)[-1]["lives"][0])
    return np.diff(lives, prepend=lives[0]) < 0


@pytest.mark.parametrize(
    ("game", "num_steps"),
    [
        ("Breakout", 450),
        ("BankHeist", 700),  # plays its last life at a counter of 0
    ],
)
def test_life_loss_ends_the_return_and_nothing_else(game: str, num_steps: int) -> None:
    plain = play(AtariSettings(game=game, max_random_noops=0), [0], num_steps)
    steps = play(AtariSettings(game=game, max_random_noops=0, life_loss=True), [0], num_steps)
    assert_equal(steps._replace(discount=0), plain._replace(discount=0))

    np.testing.assert_array_equal(plain.discount == 0, plain.step_type == LAST)
    ends = lost_lives(game, num_steps) | (plain.step_type[:, 0] == LAST)
    np.testing.assert_array_equal(steps.discount[:, 0] == 0, ends)
    assert ends.sum() >= 3 * (plain.step_type == LAST).sum() > 0


def test_rewards_are_the_games_own() -> None:
    rewards = play(AtariSettings(game="MsPacman"), [0], 100).reward
    assert set(np.unique(rewards)) >= {0, 10}


def test_same_seed_same_play_and_other_seeds_other_starts() -> None:
    settings = AtariSettings(game="MsPacman", sticky_actions=True)
    steps = play(settings, [3, 4, 5], 50)
    assert_equal(steps, play(settings, [3, 4, 5], 50))
    assert len({start.tobytes() for start in steps.observation[0]}) == 3
    swapped = play(settings, [4, 3, 5], 0)
    np.testing.assert_array_equal(swapped.observation[0], steps.observation[0][[1, 0, 2]])


@pytest.mark.parametrize(("max_random_noops", "num_starts"), [(0, 1), (1, 2), (2, 3)])
def test_starts_after_up_to_max_random_noops(max_random_noops: int, num_starts: int) -> None:
    settings = AtariSettings(game="Pong", max_random_noops=max_random_noops)
    starts = play(settings, range(8), 0).observation[0]
    assert len({start.tobytes() for start in starts}) == num_starts


def test_sticky_actions_change_the_play_of_the_same_seed() -> None:
    same_start = AtariSettings(game="Breakout", max_random_noops=0)
    sticky = AtariSettings(game="Breakout", max_random_noops=0, sticky_actions=True)
    one, other = play(same_start, [0], 40), play(sticky, [0], 40)
    np.testing.assert_array_equal(one.observation[0], other.observation[0])
    assert (one.observation != other.observation).any()
    assert_equal(one, play(same_start, [1], 40))  # without them there is no chance


@pytest.mark.parametrize("num_action_repeats", [1, 2])
def test_action_repeats_sum_rewards(num_action_repeats: int) -> None:
    """Without actions the same frames pass, however many of them a step takes."""

    def rewards(repeats: int, num_frames: int = 600) -> np.ndarray:
        settings = AtariSettings(max_random_noops=0, num_action_repeats=repeats)
        env = make_environments(settings, [0])
        env.reset()
        noop = np.zeros(1, np.int32)
        frames = [env.step(noop).reward[0] for _ in range(num_frames // repeats)]
        return np.reshape(frames, (-1, 4 // repeats)).sum(axis=1)

    np.testing.assert_array_equal(rewards(num_action_repeats), rewards(4))
    assert rewards(4).sum() < -1


def test_domain() -> None:
    assert DOMAIN.settings is AtariSettings
    assert DOMAIN.spec is spec
    assert DOMAIN.make_environments is make_environments


def test_games_of_one_run_need_the_same_actions() -> None:
    message = r"^--game=Pong,Breakout: Pong and Breakout have different actions; .*--full_action_sp"
    with pytest.raises(UserError, match=message):
        spec(AtariSettings(game="Pong,Breakout"))
    assert (
        spec(AtariSettings(game="Pong,Tennis,Breakout", full_action_space=True)).num_actions == 18
    )
    assert spec(AtariSettings(game="atari57", full_action_space=True)).num_actions == 18


def test_each_game_is_a_task() -> None:
    settings = AtariSettings(game="Pong,Breakout", num_action_repeats=3)
    assert DOMAIN.tasks(settings) == {
        "Pong": AtariSettings(game="Pong", num_action_repeats=3),
        "Breakout": AtariSettings(game="Breakout", num_action_repeats=3),
    }
