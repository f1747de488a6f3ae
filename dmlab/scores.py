"""How random play and a human do at the levels of DMLab-30.

From Espeholt et al., "IMPALA" (arXiv 1802.01561), the table from which DMLab-30 scores are
normalised since. Levels with a twin for tests have that one's scores.
"""

from __future__ import annotations

from dmlab.levels import TEST_TWINS
from seed_rl.human_scores import HumanScore

_TRAINING_SCORES = {
    "rooms_collect_good_objects_train": HumanScore(random=0.073, human=10.0),
    "rooms_exploit_deferred_effects_train": HumanScore(random=8.501, human=85.65),
    "rooms_select_nonmatching_object": HumanScore(random=0.312, human=65.9),
    "rooms_watermaze": HumanScore(random=4.065, human=54.0),
    "rooms_keys_doors_puzzle": HumanScore(random=4.135, human=53.8),
    "language_select_described_object": HumanScore(random=-0.07, human=389.5),
    "language_select_located_object": HumanScore(random=1.929, human=280.7),
    "language_execute_random_task": HumanScore(random=-5.913, human=254.05),
    "language_answer_quantitative_question": HumanScore(random=-0.33, human=184.5),
    "lasertag_one_opponent_small": HumanScore(random=-0.224, human=12.65),
    "lasertag_three_opponents_small": HumanScore(random=-0.214, human=18.55),
    "lasertag_one_opponent_large": HumanScore(random=-0.083, human=18.6),
    "lasertag_three_opponents_large": HumanScore(random=-0.102, human=31.5),
    "natlab_fixed_large_map": HumanScore(random=2.173, human=36.9),
    "natlab_varying_map_regrowth": HumanScore(random=2.989, human=24.45),
    "natlab_varying_map_randomized": HumanScore(random=7.346, human=42.35),
    "skymaze_irreversible_path_hard": HumanScore(random=0.1, human=100.0),
    "skymaze_irreversible_path_varied": HumanScore(random=14.4, human=100.0),
    "psychlab_arbitrary_visuomotor_mapping": HumanScore(random=0.163, human=58.75),
    "psychlab_continuous_recognition": HumanScore(random=0.224, human=58.3),
    "psychlab_sequential_comparison": HumanScore(random=0.129, human=39.5),
    "psychlab_visual_search": HumanScore(random=0.085, human=78.5),
    "explore_object_locations_small": HumanScore(random=3.575, human=74.45),
    "explore_object_locations_large": HumanScore(random=4.673, human=65.65),
    "explore_obstructed_goals_small": HumanScore(random=6.76, human=206.0),
    "explore_obstructed_goals_large": HumanScore(random=2.61, human=119.5),
    "explore_goal_locations_small": HumanScore(random=7.66, human=267.5),
    "explore_goal_locations_large": HumanScore(random=3.14, human=194.5),
    "explore_object_rewards_few": HumanScore(random=2.073, human=77.7),
    "explore_object_rewards_many": HumanScore(random=2.438, human=106.7),
}

HUMAN_SCORES = {
    **_TRAINING_SCORES,
    **{test: _TRAINING_SCORES[training] for training, test in TEST_TWINS.items()},
}
