"""The engine's scenarios by name, written down so that a learner needs no engine to check flags."""

from __future__ import annotations

from seed_rl.task_names import split_names, unknown_name

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


def scenario_names(scenarios: str) -> tuple[str, ...]:
    """Names from "5_vs_5" or "academy_corner,academy_run_to_score".

    Raises:
      UserError: there is no such scenario, or one is there twice.
    """
    return split_names(scenarios, _known)


def _known(scenario: str) -> str:
    if scenario not in SCENARIOS:
        raise unknown_name(scenario, "scenario", SCENARIOS, "one of " + ", ".join(SCENARIOS))
    return scenario
