"""Plays Catch with an exported policy and prints its mean return: play_catch.py POLICY REPOSITORY.

The policy is loaded before this project's code can be found; only the environment is the project's.
"""

import importlib.util
import sys

import numpy as np
import tensorflow as tf

NUM_EPISODES = 64
FIRST_SEED = 1_000_000  # far from those that the policy was trained on

policy_directory, repository = sys.argv[1:]
policy = tf.saved_model.load(policy_directory)
assert importlib.util.find_spec("seed_rl") is None

sys.path.append(repository)
from catch.env import DOMAIN  # noqa: E402

settings = DOMAIN.settings()
seeds = range(FIRST_SEED, FIRST_SEED + NUM_EPISODES)
environments = DOMAIN.make_environments(settings, seeds)
time_step = environments.reset()
action = np.zeros(NUM_EPISODES, np.int32)
state = policy.initial_state(NUM_EPISODES)
returns = np.zeros(NUM_EPISODES)
for _ in range(settings.rows - 1):  # every episode has this length
    action, state = policy.act(
        time_step.step_type,
        time_step.reward,
        time_step.discount,
        time_step.observation,
        action,
        state,
    )
    time_step = environments.step(action.numpy())
    returns += time_step.reward
print(f"mean return {returns.mean()}")
