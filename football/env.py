"""Google Research Football (Kurach et al., 2020, arXiv 1907.11180), seen as packed minimaps.

The engine's Python module is only needed where environments run: the learner does without.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from football.adapter import OldGymAdapter
from football.packing import BITS, pack
from football.scenarios import scenario_names
from seed_rl.domain import Domain
from seed_rl.environments import SCORE, GymnasiumVector, vectorize
from seed_rl.errors import UserError
from seed_rl.settings import setting
from seed_rl.types import ArraySpec, EnvironmentSpec

NUM_ACTIONS = 19  # the engine's default action set
SMM_SIZES = {"default": (96, 72), "medium": (120, 90), "large": (144, 108)}  # width, height


@dataclasses.dataclass(frozen=True)
class FootballSettings:
    """What is played, what is paid, and how finely it is seen."""

    game: str = setting(
        "11_vs_11_easy_stochastic",
        "Scenario: 11_vs_11_easy_stochastic, 11_vs_11_stochastic, 11_vs_11_hard_stochastic, or "
        "another of the engine's, such as academy_empty_goal_close; or a list of them: environment "
        "i plays scenario i modulo their number.",
    )
    reward_experiment: str = setting(
        "scoring",
        "'scoring' (1 for a goal, -1 for the opponent's), or 'scoring,checkpoints', which also "
        "pays 0.1 for each of ten lines over which the ball is carried to the opponent's goal.",
        choices=("scoring", "scoring,checkpoints"),
    )
    smm_size: str = setting(
        "default",
        "Size of the minimaps: 'default' (96x72), 'medium' (120x90) or 'large' (144x108).",
        choices=tuple(SMM_SIZES),
    )


def spec(settings: FootballSettings) -> EnvironmentSpec:
    """Observations are uint16 [height, width, 1], see football.packing.

    Bit 4 k + c of a pixel is channel c (left team, right team, ball, active player) of the k-th of
    the last four minimaps, oldest first.

    Raises:
      UserError: there is no such scenario.
    """
    scenario_names(settings.game)
    return EnvironmentSpec(_observation(settings), NUM_ACTIONS, has_score=True)


def _observation(settings: FootballSettings) -> ArraySpec:
    width, height = SMM_SIZES[settings.smm_size]
    return ArraySpec.of((height, width, 1), np.uint16)


def tasks(settings: FootballSettings) -> dict[str, FootballSettings]:
    """One task for each scenario."""
    return {x: dataclasses.replace(settings, game=x) for x in scenario_names(settings.game)}


def make_environments(settings: FootballSettings, seeds: Sequence[int]) -> GymnasiumVector:
    """Environments of one scenario, one per seed.

    Raises:
      UserError: there is no such scenario, or the engine is not installed.
    """
    return vectorize(lambda: Football(settings), seeds, has_score=True)


class Football(gymnasium.Wrapper):
    """One scenario, with the left team's active player to control.

    A step's score, in its info, is the goal difference that it made, without shaping. Where an
    episode's time is up it is truncated: the minimaps show no clock, so that a value can't know how
    much time is left.

    Args:
      settings: what is played.

    Raises:
      UserError: see make_environments.
    """

    def __init__(self, settings: FootballSettings):
        (scenario,) = scenario_names(settings.game)
        engine = _import_engine()
        env = engine.create_environment(
            env_name=scenario,
            representation="extracted",
            rewards=settings.reward_experiment,
            stacked=True,
            channel_dimensions=SMM_SIZES[settings.smm_size],
            logdir=tempfile.gettempdir(),
        )
        # The engine has no seed(); its own wrappers, too, reach its configuration in this way.
        self._config = env.unwrapped._config
        self._first_episode = self._config["episode_number"]
        super().__init__(
            OldGymAdapter(
                env,
                seed_next_episode=self._seed_next_episode,
                is_time_up=lambda: env.unwrapped.observation()[0]["steps_left"] <= 0,
            )
        )
        packed = _observation(settings)
        self.observation_space = gymnasium.spaces.Box(0, 2**BITS - 1, packed.shape, np.uint16)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        if kwargs.get("seed") is not None:
            # The teams change ends with every episode; a seed starts from the first.
            self._config.update({"episode_number": self._first_episode})
        observation, info = self.env.reset(**kwargs)
        return pack(observation), info

    def step(self, action: int) -> tuple[Any, ...]:
        observation, *rest, info = self.env.step(action)
        return pack(observation), *rest, {SCORE: float(info["score_reward"])}

    def _seed_next_episode(self, seed: int) -> None:
        # The engine draws which team is processed first once, from a seed that nobody chose,
        # and would keep to that.
        self._config.update(
            {"game_engine_random_seed": seed, "reverse_team_processing": bool(seed % 2)}
        )


def _import_engine() -> Any:
    try:
        import gym_notices.notices

        gym_notices.notices.notices.clear()  # what gym would print of itself in every actor
        import gfootball.env
    except ModuleNotFoundError as error:
        if error.name != "gfootball":
            raise  # of something that the engine needs
        raise UserError(
            "--run_mode=actor: the football engine's module gfootball is not installed; run "
            "./setup.sh --domain=football in the repository's root."
        ) from error
    return gfootball.env


DOMAIN = Domain(FootballSettings, spec, make_environments, tasks)
