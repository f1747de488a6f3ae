"""A stand-in for DeepMind Lab's Python module, which no package index has.

It takes what the real one takes, and refuses what that refuses, in the same way or a louder one;
where the real one's behaviour is undefined or a trap (an action out of range, no seed), it refuses.
Its levels are no levels: an image that depends on level, rules, seed and frame, and a few rewards.

- An episode takes 58 frames, which no repeat of 4 divides.
- Walking forward gives 0.25 a frame, firing -1 a frame.
- Levels named explore_* make a map, a zip archive that differs between the MAPS maps of a level,
  and ask the level cache for it; the first pixel of the image shows which map was loaded.
- Levels named language_* have an instruction.
- Levels named *_test are held out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

EPISODE_FRAMES = 58
MAPS = 3

_LEVEL = re.compile(
    r"contributed/dmlab30/(rooms|language|lasertag|natlab|skymaze|psychlab|explore)_\w+|tests/\w+"
)
_OBSERVATIONS = {"RGB_INTERLEAVED", "INSTR"}
_LOWEST, _HIGHEST = (-512, -512, -1, -1, 0, 0, 0), (512, 512, 1, 1, 1, 1, 1)
_runfiles_path = str(Path(__file__).parent)


def set_runfiles_path(path: str) -> None:
    global _runfiles_path
    _require(type(path) is str, "path: must be str")
    _runfiles_path = path


def runfiles_path() -> str:
    return _runfiles_path


class Lab:
    def __init__(
        self,
        level: str,
        observations: list,
        config: dict | None = None,
        renderer: str = "software",
        level_cache: Any = None,
        temp_folder: str = "",
    ):
        _require(type(level) is str, "level: must be str")
        _require(type(observations) is list, "observations: must be a list")
        config = {} if config is None else config
        _require(type(config) is dict, "config: must be a dict")
        for key, value in config.items():
            _require(type(key) is str and type(value) is str, "config: must be of str to str")
        _require(type(temp_folder) is str, "temp_folder: must be str")
        if renderer not in ("software", "hardware"):
            raise ValueError(f"renderer: expected 'software' or 'hardware', got {renderer!r}")
        if unknown := set(observations) - _OBSERVATIONS:
            raise ValueError(f"Unknown observations: {unknown}")
        if not _LEVEL.fullmatch(level):
            raise RuntimeError(f"Failed to load level script: {level!r}")
        if level.endswith("_test") and config.get("allowHoldOutLevels") != "true":
            raise RuntimeError(f"{level}: requires allowHoldOutLevels = 'true'")
        self.width, self.height = (int(config.get(key, 320)) for key in ("width", "height"))
        if self.width % 4 or self.height % 4:
            raise ValueError("width and height must be multiples of 4")
        self.config, self.renderer = dict(config), renderer
        self._level, self._observations, self._cache = level, observations, level_cache
        # As the real one, it leaves this behind.
        self._folder = Path(tempfile.mkdtemp(prefix="dmlab_temp_folder_", dir=temp_folder or None))
        (self._folder / "baselab").write_text("files of the engine\n")
        self._status, self._frame = "not started", 0
        self.maps_made = 0

    def reset(self, episode: int = -1, seed: int | None = None) -> bool:
        self._require_open()
        _require(type(episode) is int, "episode: must be int")
        _require(type(seed) is int, f"seed: must be int, got {seed!r}")
        if not 0 <= seed < 2**31:
            raise OverflowError("seed: must fit a C int")
        self._seed = zlib.crc32(f"{self._level}{self.config.get('mixerSeed', '0')}{seed}".encode())
        self._map = self._load_map() if "/explore_" in self._level else 0
        self._status, self._frame = "running", 0
        return True

    def is_running(self) -> bool:
        self._require_open()
        return self._status == "running"

    def num_steps(self) -> int:
        return self._frame

    def observations(self) -> dict[str, Any]:
        self._require_running()
        values = {"RGB_INTERLEAVED": self._image(), "INSTR": self._instruction()}
        return {name: values[name] for name in self._observations}

    def step(self, action: np.ndarray, num_steps: int = 1) -> float:
        self._require_running()
        _require(type(action) is np.ndarray and action.dtype == np.intc, "action: must be intc")
        _require(action.shape == (7,) and action.flags.c_contiguous, "action: must be contiguous")
        if (action < _LOWEST).any() or (action > _HIGHEST).any():
            raise AssertionError(f"undefined behaviour: action {action}")
        if type(num_steps) is not int or num_steps < 1:
            raise ValueError("num_steps: must be a positive int")
        frames = min(num_steps, EPISODE_FRAMES - self._frame)
        self._frame += frames
        if self._frame == EPISODE_FRAMES:
            self._status = "ended"
        return frames * (0.25 * max(int(action[3]), 0) - 1.0 * int(action[4]))

    def close(self) -> None:
        self._status = "closed"

    def _image(self) -> np.ndarray:
        rng = np.random.default_rng([self._seed, self._frame])
        image = rng.integers(0, 256, (self.height, self.width, 3), np.uint8)
        image[0, 0] = self._map
        image[0, 1] = self._frame
        return image

    def _instruction(self) -> str:
        if "/language_" not in self._level:
            return ""
        color, thing = ["Red", "green", "blue"][self._seed % 3], ["ball", "HAT"][self._seed % 2]
        return f"Pick up the {color} {thing}!"

    def _load_map(self) -> int:
        """The number of the map that this episode is played on."""
        number = self._seed % MAPS
        key = f"{self._level}/{number}"
        path = self._folder / f"{zlib.crc32(key.encode()):08x}.pk3"
        path.unlink(missing_ok=True)
        if self._cache is None:
            self._make_map(path, number)
        elif self._fetched(key, path):
            if not path.exists():
                print("Level cache: fetch was True, but there is no file", file=sys.stderr)
                sys.stderr.flush()
                os._exit(1)
        else:
            self._make_map(path, number)
            self._cache.write(key, str(path))
        with zipfile.ZipFile(path) as archive:
            return int(archive.read("maps/level.bsp")[0])

    def _fetched(self, key: str, path: Path) -> bool:
        fetched = self._cache.fetch(key, str(path))
        _require(type(fetched) is bool, "level_cache.fetch: must return bool")
        return fetched

    def _make_map(self, path: Path, number: int) -> None:
        self.maps_made += 1
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            noise = np.random.default_rng(number).bytes(5_000)
            archive.writestr("maps/level.bsp", bytes([number]) + noise)
            archive.writestr("maps/level.aas", noise)

    def _require_open(self) -> None:
        if self._status == "closed":
            raise RuntimeError("The environment is closed.")

    def _require_running(self) -> None:
        self._require_open()
        if self._status != "running":
            raise RuntimeError("The environment is not running: reset it first.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise TypeError(message)
