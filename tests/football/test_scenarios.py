import importlib.util
from pathlib import Path

import pytest

from football.scenarios import SCENARIOS, scenario_names
from seed_rl.errors import UserError


def test_they_are_the_engines() -> None:
    (package,) = importlib.util.find_spec("gfootball.scenarios").submodule_search_locations
    files = {path.stem for path in Path(package).glob("*.py")}
    assert set(SCENARIOS) == files - {"__init__", "test_example_multiagent"}


def test_lists_of_scenarios() -> None:
    assert scenario_names("5_vs_5") == ("5_vs_5",)
    two = ("academy_corner", "academy_run_to_score")
    assert scenario_names("academy_corner, academy_run_to_score") == two


def test_a_scenario_twice() -> None:
    with pytest.raises(UserError, match=r"^--game: .* got 5_vs_5 more than once"):
        scenario_names("5_vs_5,5_vs_5")


def test_unknown_scenario() -> None:
    with pytest.raises(UserError, match=r"^--game=academy_empty_gaol: .*academy_empty_goal"):
        scenario_names("academy_empty_gaol")
    with pytest.raises(UserError, match=r"^--game=Pong: .* expected one of .*11_vs_11_stochastic"):
        scenario_names("Pong,5_vs_5")
