"""Reports as the tuning service finds them: lines of JSON in a file that it names."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from seed_rl.tuning import TuningReport


class Reports:
    """A report with a clock that the test sets, and what it has written."""

    def __init__(self, file: pathlib.Path, metric: str):
        self.seconds = 100.0
        self.report = TuningReport(metric, clock=lambda: self.seconds)
        self._file = file

    @property
    def written(self) -> list[tuple[float, int]]:
        if not self._file.exists():
            return []
        entries: list[dict[str, Any]] = [json.loads(x) for x in self._file.read_text().splitlines()]
        assert all(entry["trial"] == "5" for entry in entries)
        return [(float(entry["mean"]), int(entry["global_step"])) for entry in entries]


@pytest.fixture
def file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "5")
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(tmp_path / "hypertune" / "output.metrics"))
    return tmp_path / "hypertune" / "output.metrics"


def test_the_newest_value_is_reported_each_minute_and_at_the_end(file: pathlib.Path) -> None:
    reports = Reports(file, "mean")
    for seconds, value in [(0, 1.0), (59, 2.0), (60, 3.0), (61, 4.0), (90, 5.0)]:
        reports.seconds = 100.0 + seconds
        reports.report.add({"mean": value, "other": 9.0}, 10 * seconds)
    assert reports.written == [(1.0, 0), (3.0, 600)]
    reports.report.flush()
    assert reports.written == [(1.0, 0), (3.0, 600), (5.0, 900)]
    reports.report.flush()
    assert len(reports.written) == 3


def test_other_scalars_are_passed_over(file: pathlib.Path) -> None:
    reports = Reports(file, "mean")
    reports.report.add({"other": 1.0}, 10)
    reports.report.flush()
    assert reports.written == []


def test_without_a_metric_nothing_is_touched(file: pathlib.Path) -> None:
    reports = Reports(file, "")
    reports.report.add({"": 1.0, "mean": 1.0}, 10)
    reports.report.flush()
    assert not file.parent.exists()
