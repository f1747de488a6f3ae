"""Atari 2600 games on the Arcade Learning Environment (Machado et al., 2018, arXiv 1709.06009).

Observations are single grayscale frames. The learner stacks them, so that each frame crosses the
wire and lies in memory once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import ale_py
import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.spaces import Discrete
from gymnasium.vector import (
    AutoresetMode,
    VectorActionWrapper,
    VectorEnv,
    VectorObservationWrapper,
    VectorWrapper,
)
from gymnasium.vector.utils import batch_space

from atari.games import game_names, rom_id
from atari.scores import HUMAN_SCORES
from seed_rl.domain import Domain
from seed_rl.environments import RETURN_ENDED, GymnasiumVector
from seed_rl.errors import UserError
from seed_rl.settings import setting
from seed_rl.threads import started_as
from seed_rl.types import ArraySpec, EnvironmentSpec

FRAME = ArraySpec.of((84, 84), np.uint8)
STICKY_ACTION_PROBABILITY = 0.25  # Machado et al. (2018)
_ALL_ACTIONS = tuple(ale_py.Action.__members__.values())  # the joystick's directions and button
EMULATOR_THREAD = "emulator"  # name of the thread in which ALE steps all of a process's games


@dataclasses.dataclass(frozen=True)
class AtariSettings:
    """What game is played and by which rules; the defaults are those of the Atari-57 literature."""

    game: str = setting(
        "Pong",
        "Game by its usual name, such as Pong or MsPacman; several with commas between them, which "
        "the environments play in turn; or atari57, all of the benchmark's.",
    )
    num_action_repeats: int = setting(
        4, "Emulated frames per step, all with the same action.", minimum=1
    )
    full_action_space: bool = setting(
        False, "Offer all 18 joystick actions instead of those that matter in the game."
    )
    sticky_actions: bool = setting(
        False, "In each frame, repeat the previous frame's action with probability 0.25."
    )
    max_random_noops: int = setting(
        30, "An episode starts with 0 to this many frames without action, at random.", minimum=0
    )
    max_episode_frames: int = setting(
        108_000, "Emulated frames after which an episode is cut off (30 minutes).", minimum=1
    )
    life_loss: bool = setting(
        False, "A lost life ends the return (discount 0), though not the episode."
    )


def spec(settings: AtariSettings) -> EnvironmentSpec:
    """Observations are uint8 [84, 84] luminances.

    Raises:
      UserError: there is no such game, or the games have different actions.
    """
    games = game_names(settings.game)
    actions = [_actions(game, settings.full_action_space) for game in games]
    for game, own in zip(games, actions, strict=True):
        if own != actions[0]:
            raise UserError(
                f"--game={settings.game}: {games[0]} and {game} have different actions; expected "
                "--full_action_space, which gives all games the same."
            )
    return EnvironmentSpec(FRAME, len(actions[0]), settings.num_action_repeats)


def _actions(game: str, full_action_space: bool) -> list[ale_py.Action]:
    minimal = _interface(game).getMinimalActionSet()
    return list(_ALL_ACTIONS) if full_action_space else minimal


def _interface(game: str) -> ale_py.ALEInterface:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # else it describes itself at length
    ale = ale_py.ALEInterface()
    ale.loadROM(roms.get_rom_path(rom_id(game)))
    return ale


def tasks(settings: AtariSettings) -> dict[str, AtariSettings]:
    """One task for each game."""
    return {game: dataclasses.replace(settings, game=game) for game in game_names(settings.game)}


def make_environments(settings: AtariSettings, seeds: Sequence[int]) -> GymnasiumVector:
    """Environments of one game, one emulator per seed (0 to 2^31 - 1).

    Rewards are the game's own, unclipped.

    Raises:
      UserError: there is no such game.
    """
    height, width = FRAME.shape
    with started_as(EMULATOR_THREAD):
        env = AtariVectorEnv(
            rom_id(settings.game),
            len(seeds),
            num_threads=1,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            frameskip=settings.num_action_repeats,
            # Sprites flicker: most are drawn in every second frame.
            maxpool=settings.num_action_repeats > 1,
            repeat_action_probability=STICKY_ACTION_PROBABILITY if settings.sticky_actions else 0.0,
            full_action_space=settings.full_action_space,
            noop_max=settings.max_random_noops + 1,  # ALE draws from 0 to noop_max - 1
            use_fire_reset=False,
            max_num_frames_per_episode=settings.max_episode_frames,  # counted after the no-ops
            reward_clipping=False,
            grayscale=True,
            img_height=height,
            img_width=width,
            stack_num=1,
        )
    env = _Unstacked(env)
    if settings.full_action_space:
        env = _AllActions(env, _interface(settings.game).getLegalActionSet())
    if settings.life_loss:
        env = _LifeLoss(env)
    return GymnasiumVector(env, np.asarray(seeds))


class _Unstacked(VectorObservationWrapper):
    """Observations [N, 1, 84, 84] as views [N, 84, 84]."""

    def observations(self, observations: np.ndarray) -> np.ndarray:
        return observations[:, 0]


class _AllActions(VectorActionWrapper):
    """Takes all 18 actions in games too whose engine knows none with the button, such as Skiing."""

    def __init__(self, env: VectorEnv, known: Sequence[ale_py.Action]):
        super().__init__(env)
        self._index = np.array([known.index(_nearest(action, known)) for action in _ALL_ACTIONS])
        self.single_action_space = Discrete(len(self._index))
        self.action_space = batch_space(self.single_action_space, env.num_envs)

    def actions(self, actions: np.ndarray) -> np.ndarray:
        return self._index[actions]


def _nearest(action: ale_py.Action, known: Sequence[ale_py.Action]) -> ale_py.Action:
    """The action, or what is left of it without the button."""
    if action in known:
        return action
    return ale_py.Action.__members__[action.name.removesuffix("FIRE") or "NOOP"]


class _LifeLoss(VectorWrapper):
    """Ends the return where a life is lost.

    ALE can report lost lives as terminations instead (life_loss_info). They then look like the end
    of the game in those games that play their last life at a counter of 0, such as Atlantis.
    """

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        self._lives = info["lives"]
        return observation, info

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        *time_step, info = self.env.step(actions)
        info[RETURN_ENDED] = info["lives"] < self._lives
        self._lives = info["lives"]
        return *time_step, info


DOMAIN = Domain(AtariSettings, spec, make_environments, tasks=tasks, human_scores=HUMAN_SCORES)
