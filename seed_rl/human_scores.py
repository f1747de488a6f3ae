"""Human-normalised scores: how a return stands between random play (0) and a human's (100)."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class HumanScore:
    """Mean undiscounted returns of one task.

    Attributes:
      random: of a policy that ignores what it sees.
      human: of a person.
    """

    random: float
    human: float

    def normalize(self, mean_return: float) -> float:
        """In percent: 0 at random play, 100 at the human's (Mnih et al., Nature 2015)."""
        return 100.0 * (mean_return - self.random) / (self.human - self.random)


def summarize(
    mean_returns: Mapping[str, float], human_scores: Mapping[str, HumanScore]
) -> dict[str, float]:
    """Mean and median over tasks of their human-normalised scores, in percent.

    The capped ones count no task as more than 100 (as for DMLab-30: Espeholt et al., arXiv
    1802.01561), so that they say how far the tasks are from being solved and no single task can
    carry them.

    Args:
      mean_returns: by task.
      human_scores: of the same tasks, at least.

    Returns:
      Values for mean, median, mean_capped, median_capped.
    """
    scores = [human_scores[task].normalize(value) for task, value in mean_returns.items()]
    capped = [min(score, 100.0) for score in scores]
    return {
        "mean": statistics.fmean(scores),
        "median": statistics.median(scores),
        "mean_capped": statistics.fmean(capped),
        "median_capped": statistics.median(capped),
    }
