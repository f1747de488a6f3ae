"""Sets of actions, each of which stands for one of the engine's raw actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Look left/right, look up/down, strafe, move, fire, jump, crouch.
_SMALLEST = np.array((-512, -512, -1, -1, 0, 0, 0), np.intc)
_LARGEST = np.array((512, 512, 1, 1, 1, 1, 1), np.intc)

# Those of the experiments in IMPALA (Espeholt et al., arXiv 1802.01561) and SEED RL.
_DEFAULT = (
    (0, 0, 0, 1, 0, 0, 0),  # forward
    (0, 0, 0, -1, 0, 0, 0),  # backward
    (0, 0, -1, 0, 0, 0, 0),  # strafe left
    (0, 0, 1, 0, 0, 0, 0),  # strafe right
    (-20, 0, 0, 0, 0, 0, 0),  # look left
    (20, 0, 0, 0, 0, 0, 0),  # look right
    (-20, 0, 0, 1, 0, 0, 0),  # look left and go forward
    (20, 0, 0, 1, 0, 0, 0),  # look right and go forward
    (0, 0, 0, 0, 1, 0, 0),  # fire
)

# The larger set for DMLab-30 of Hessel et al., "Multi-task Deep RL with PopArt" (arXiv 1809.04474):
# it looks in two speeds, and up and down.
_EXTENDED = (
    (0, 0, 0, 1, 0, 0, 0),  # forward
    (0, 0, 0, -1, 0, 0, 0),  # backward
    (0, 0, -1, 0, 0, 0, 0),  # strafe left
    (0, 0, 1, 0, 0, 0, 0),  # strafe right
    (-10, 0, 0, 0, 0, 0, 0),  # look left a little
    (10, 0, 0, 0, 0, 0, 0),  # look right a little
    (-60, 0, 0, 0, 0, 0, 0),  # look left
    (60, 0, 0, 0, 0, 0, 0),  # look right
    (0, 10, 0, 0, 0, 0, 0),  # look down
    (0, -10, 0, 0, 0, 0, 0),  # look up
    (-10, 0, 0, 1, 0, 0, 0),  # look left a little and go forward
    (10, 0, 0, 1, 0, 0, 0),  # look right a little and go forward
    (-60, 0, 0, 1, 0, 0, 0),  # look left and go forward
    (60, 0, 0, 1, 0, 0, 0),  # look right and go forward
    (0, 0, 0, 0, 1, 0, 0),  # fire
)

# Of our own, for levels outside DMLab-30, whose obstacles can be jumped on or crept under.
_EXTENDED_JUMP = (
    *_EXTENDED,
    (0, 0, 0, 0, 0, 1, 0),  # jump
    (0, 0, 0, 1, 0, 1, 0),  # jump forward
    (0, 0, 0, 0, 0, 0, 1),  # crouch
    (0, 0, 0, 1, 0, 0, 1),  # crouch and go forward
)


def action_table(raw_actions: Sequence[Sequence[int]]) -> np.ndarray:
    """C-contiguous intc [N, 7], so that each row is what the engine takes.

    Raises:
      ValueError: a number is out of range, which the engine itself would not notice.
    """
    table = np.array(raw_actions, np.intc)
    for number, row in enumerate(table):
        if (row < _SMALLEST).any() or (row > _LARGEST).any():
            raise ValueError(
                f"raw_actions[{number}]: expected {_SMALLEST.tolist()} to {_LARGEST.tolist()}, "
                f"got {row.tolist()}."
            )
    return table


ACTION_SETS = {
    "default": action_table(_DEFAULT),
    "extended": action_table(_EXTENDED),
    "extended_jump": action_table(_EXTENDED_JUMP),
}
