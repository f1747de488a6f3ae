"""Puts the engine's stand-in where the real module would be."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).resolve().parent / "stand_in"


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in, as the module that `import deepmind_lab` gives."""
    monkeypatch.syspath_prepend(str(STAND_IN))
    import deepmind_lab

    yield deepmind_lab


@pytest.fixture
def labs(engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The engine's environments, in the order in which the test makes them."""
    made: list[Any] = []

    class Recorded(engine.Lab):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(engine, "Lab", Recorded)
    return made
