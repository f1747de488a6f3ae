"""Reports to hyper-parameter tuning (Vertex AI's), which compares trials by one scalar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import hypertune

REPORT_SECONDS = 60.0


class TuningReport:
    """Reports the newest value of one scalar, at most once a minute and at the end.

    Args:
      metric: the scalar's tag; empty: reports nothing.
      clock: seconds from any start.
    """

    def __init__(self, metric: str, clock: Callable[[], float] = time.monotonic):
        self._metric = metric
        self._clock = clock
        self._reporter = hypertune.HyperTune() if metric else None
        self._latest: tuple[float, int] | None = None  # not reported yet: value, frames
        self._reported_at = -float("inf")

    def add(self, scalars: Mapping[str, float], frames: int) -> None:
        """Takes scalars by tag, of which the metric may be one, at these environment frames."""
        if self._reporter is None or self._metric not in scalars:
            return
        self._latest = scalars[self._metric], frames
        if self._clock() - self._reported_at >= REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Reports what has not been reported."""
        if self._reporter is not None and self._latest is not None:
            value, frames = self._latest
            self._reporter.report_hyperparameter_tuning_metric(self._metric, value, frames)
            self._reported_at = self._clock()
            self._latest = None
