"""DeepMind Lab: first-person tasks in 3D (Beattie et al., 2016, arXiv 1612.03801).

The engine's Python module is only needed where environments run: the learner does without.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from dmlab.actions import ACTION_SETS
from dmlab.instructions import NUM_BUCKETS, word_ids
from dmlab.level_cache import open_level_cache
from dmlab.levels import TEST_TWINS, level_names, level_path
from dmlab.scores import HUMAN_SCORES
from seed_rl.domain import Domain
from seed_rl.environments import GymnasiumVector, vectorize
from seed_rl.errors import UserError
from seed_rl.settings import setting
from seed_rl.types import ArraySpec, EnvironmentSpec

Observation = np.ndarray | dict[str, np.ndarray]

_IMAGE, _INSTRUCTION = "RGB_INTERLEAVED", "INSTR"  # the engine's names
_NUM_SEEDS = 2**31 - 1  # the engine's are C ints
_PIXEL_MULTIPLE = 4  # of which the engine's width and height must be
# What makes a test's episodes differ from all training episodes with the same seeds.
_TEST_MIXER_SEED = 0x600D5EED


@dataclasses.dataclass(frozen=True)
class DMLabSettings:
    """What levels are played and what is seen of them; the defaults are those of the papers."""

    game: str = setting(
        "explore_goal_locations_small",
        "Level of DMLab-30 by its short name, or any level by its path; several with commas between"
        " them, which the environments play in turn; or dmlab30, all of the benchmark's.",
    )
    width: int = setting(96, "Of what is seen, in pixels: a multiple of 4.", minimum=4)
    height: int = setting(72, "Of what is seen, in pixels: a multiple of 4.", minimum=4)
    num_action_repeats: int = setting(
        4, "Engine frames per step, all with the same action.", minimum=1
    )
    action_set: str = setting(
        "default",
        "'default' (9 actions), 'extended' (15: looks in two speeds, up and down) or "
        "'extended_jump' (19: also jumps and crouches).",
        choices=tuple(ACTION_SETS),
    )
    instruction: bool = setting(
        False, "The network also reads the level's instruction; the language levels need it."
    )
    max_instruction_words: int = setting(
        16, "With --instruction: how many of its words are read.", minimum=1
    )
    held_out_levels: bool = setting(
        False,
        "Play by the rules of tests: with what levels hold out for them, and with episodes that "
        "training never sees. Evaluation environments (--num_eval_envs) do in any case.",
    )
    renderer: str = setting(
        "software",
        "The engine's: 'hardware' takes a GPU on the actor's machine.",
        choices=("software", "hardware"),
    )
    level_cache_dir: str = setting(
        "",
        "Where generated maps are kept for all actors: a directory or gs://bucket/prefix (unset: "
        "nowhere).",
    )
    homepath: str = setting(
        "", "Folder of the engine's files (unset: those that are installed with it)."
    )
    dataset_path: str = setting(
        "", "Folder of the pictures that some psychlab levels show; the engine has none."
    )

    def __post_init__(self) -> None:
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels % _PIXEL_MULTIPLE:
                raise UserError(
                    f"--{name}: expected a multiple of {_PIXEL_MULTIPLE}, got {pixels}."
                )


def spec(settings: DMLabSettings) -> EnvironmentSpec:
    """Observations are uint8 images [height, width, 3], RGB.

    With settings.instruction they are {"image": that, "instruction": int32
    [max_instruction_words]}, see instructions.word_ids.

    Raises:
      UserError: there is no such level.
    """
    level_names(settings.game)
    image = ArraySpec.of((settings.height, settings.width, 3), np.uint8)
    words = ArraySpec.of((settings.max_instruction_words,), np.int32)
    return EnvironmentSpec(
        {"image": image, "instruction": words} if settings.instruction else image,
        len(ACTION_SETS[settings.action_set]),
        settings.num_action_repeats,
    )


def tasks(settings: DMLabSettings) -> dict[str, DMLabSettings]:
    """One task for each level."""
    return {name: dataclasses.replace(settings, game=name) for name in level_names(settings.game)}


def evaluation(settings: DMLabSettings) -> DMLabSettings:
    """A level is scored by the rules of tests, and on its twin for tests if it has one."""
    level = TEST_TWINS.get(settings.game, settings.game)
    return dataclasses.replace(settings, game=level, held_out_levels=True)


def make_environments(settings: DMLabSettings, seeds: Sequence[int]) -> GymnasiumVector:
    """Environments of one level, one per seed.

    Raises:
      UserError: there is no such level, the engine is not installed, or the level cache cannot be
        used.
    """
    return vectorize(lambda: DMLab(settings), seeds)


class DMLab(gymnasium.Env):
    """One level. Actions are numbers in the action set; rewards are the level's own, unclipped.

    An episode ends when its time is over, and that is a termination (discount 0), as in the
    published agents: levels have their fixed times, a score is what is collected in them, and the
    engine shows nothing after the end that a value could be taken of. The last observation stands
    in for the one that is missing.

    Args:
      settings: of one level.

    Raises:
      UserError: see make_environments.
    """

    def __init__(self, settings: DMLabSettings):
        self._settings = settings
        self._raw_actions = ACTION_SETS[settings.action_set]
        self.action_space = spaces.Discrete(len(self._raw_actions))
        self.observation_space = _observation_space(settings)
        self._temp_folder = tempfile.mkdtemp(prefix="dmlab_")
        try:
            self._lab = _make_lab(settings, self._temp_folder)
        except BaseException:
            self._remove_temp_folder()
            raise

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        # Without a seed the engine takes the clock's second, the same in many processes.
        self._lab.reset(seed=int(self.np_random.integers(_NUM_SEEDS)))
        self._observation = self._observe()
        return self._observation, {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        reward = self._lab.step(
            self._raw_actions[action], num_steps=self._settings.num_action_repeats
        )
        is_running = self._lab.is_running()
        if is_running:
            self._observation = self._observe()
        return self._observation, float(reward), not is_running, False, {}

    def close(self) -> None:
        self._lab.close()
        self._remove_temp_folder()

    def _observe(self) -> Observation:
        seen = self._lab.observations()
        if not self._settings.instruction:
            return seen[_IMAGE]
        words = word_ids(seen[_INSTRUCTION], self._settings.max_instruction_words)
        return {"image": seen[_IMAGE], "instruction": words}

    def _remove_temp_folder(self) -> None:
        shutil.rmtree(self._temp_folder, ignore_errors=True)


def _observation_space(settings: DMLabSettings) -> spaces.Space:
    image = spaces.Box(0, 255, (settings.height, settings.width, 3), np.uint8)
    if not settings.instruction:
        return image
    words = spaces.Box(0, NUM_BUCKETS, (settings.max_instruction_words,), np.int32)
    return spaces.Dict({"image": image, "instruction": words})


def _make_lab(settings: DMLabSettings, temp_folder: str) -> Any:
    """The engine with one level. What it writes for itself, the maps too, goes to temp_folder."""
    (level,) = level_names(settings.game)
    deepmind_lab = _import_engine()
    if settings.homepath:
        deepmind_lab.set_runfiles_path(settings.homepath)
    cache = open_level_cache(settings.level_cache_dir) if settings.level_cache_dir else None
    try:
        return deepmind_lab.Lab(
            level=level_path(level),
            observations=[_IMAGE, _INSTRUCTION] if settings.instruction else [_IMAGE],
            config=_engine_config(settings, level),
            renderer=settings.renderer,
            level_cache=cache,
            temp_folder=temp_folder,
        )
    except RuntimeError as error:
        raise UserError(
            f"--game={level}: expected a level that DeepMind Lab can start, which says: {error}."
        ) from error


def _engine_config(settings: DMLabSettings, level: str) -> dict[str, str]:
    config = {
        "width": str(settings.width),
        "height": str(settings.height),
        "logLevel": "WARN",
    }
    if settings.dataset_path:
        config["datasetPath"] = settings.dataset_path
    if settings.held_out_levels or level in TEST_TWINS.values():
        config["allowHoldOutLevels"] = "true"
        config["mixerSeed"] = str(_TEST_MIXER_SEED)
    return config


def _import_engine() -> Any:
    try:
        import deepmind_lab
    except ModuleNotFoundError as error:
        if error.name != "deepmind_lab":
            raise  # of something that the engine needs
        raise UserError(
            "--run_mode=actor: DeepMind Lab's module deepmind_lab is not installed, and no package "
            "index has it; run actors in the image of docker/Dockerfile.dmlab, which builds it."
        ) from error
    return deepmind_lab


DOMAIN = Domain(
    DMLabSettings,
    spec,
    make_environments,
    tasks=tasks,
    evaluation=evaluation,
    human_scores=HUMAN_SCORES,
)
