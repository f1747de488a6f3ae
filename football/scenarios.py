"""The engine's scenarios by name, written down so that a learner needs no engine to check flags."""

from __future__ import annotations

import difflib

from seed_rl.errors import UserError

SCENARIOS = (
    "11_vs_11_competition",
    "11_vs_11_easy_stochastic",
    "11_vs_11_hard_stochastic",
    "11_vs_11_kaggle",
    "11_vs_11_stochastic",
    "1_vs_1_easy",
    "5_vs_5",
    "academy_3_vs_1_with_keeper",
    "academy_corner",
    "academy_counterattack_easy",
    "academy_counterattack_hard",
    "academy_empty_goal",
    "academy_empty_goal_close",
    "academy_pass_and_shoot_with_keeper",
    "academy_run_pass_and_shoot_with_keeper",
    "academy_run_to_score",
    "academy_run_to_score_with_keeper",
    "academy_single_goal_versus_lazy",
)


def check_scenario(name: str) -> None:
    """Raises UserError if there is no such scenario."""
    if name not in SCENARIOS:
        close = difflib.get_close_matches(name, SCENARIOS, n=3) or SCENARIOS
        raise UserError(f"--game={name}: expected a scenario such as {', '.join(close)}.")
