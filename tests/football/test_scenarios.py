import importlib.util
from pathlib import Path

import pytest

from football.scenarios import SCENARIOS, check_scenario
from seed_rl.errors import UserError


def test_they_are_the_engines() -> None:
    (package,) = importlib.util.find_spec("gfootball.scenarios").submodule_search_locations
    files = {path.stem for path in Path(package).glob("*.py")}
    assert set(SCENARIOS) == files - {"__init__", "test_example_multiagent"}


def test_unknown_scenario() -> None:
    with pytest.raises(UserError, match=r"^--game=academy_empty_gaol: .*academy_empty_goal"):
        check_scenario("academy_empty_gaol")
    with pytest.raises(UserError, match=r"^--game=Pong: .*11_vs_11_stochastic"):
        check_scenario("Pong")
