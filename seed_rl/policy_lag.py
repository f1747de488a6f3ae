"""Policy lag: how many updates lie between acting and training on what came of it."""

from __future__ import annotations

import numpy as np

from seed_rl.trajectories import StepType, Unroll


def policy_lag(unrolls: Unroll, training_step: int, overlap: int) -> float:
    """Mean lag, in training steps, of the transitions that an update from `unrolls` is about.

    They are those that the unroll does not share with the one before it (so no burn-in), without
    those from LAST to FIRST. From a replay, the lag is the age of the data.

    Args:
      unrolls: batch-major [B, T, ...].
      training_step: updates before this one; on-policy data has the lag 0.
      overlap: steps that consecutive unrolls share.
    """
    trained = np.s_[:, max(0, overlap - 1) : -1]
    is_experience = np.asarray(unrolls.time_step.step_type)[trained] != StepType.LAST
    lags = training_step - np.asarray(unrolls.policy_version)[trained]
    return float(np.sum(lags * is_experience) / max(1, np.sum(is_experience)))
