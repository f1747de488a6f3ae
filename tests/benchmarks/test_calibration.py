"""The machine's speed."""

import itertools

import pytest

from benchmarks import calibration
from benchmarks.calibration import COLUMN, Calibration


def test_all_speeds_are_measured() -> None:
    speeds = calibration.measure(seconds=0.01)
    assert speeds.product_gflops > 0
    assert speeds.bfloat16_gflops > 0
    assert speeds.convolution_gflops > 0


def test_the_text_has_what_the_column_names() -> None:
    assert str(Calibration(11.4, 222.6, 33.0)) == "11 / 223 / 33"
    assert COLUMN.startswith("f32 / bf16 / conv")


def test_the_speed_is_that_of_the_median_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    durations = itertools.cycle([1.0, 2.0, 100.0, 2.0, 5.0])
    clock = itertools.accumulate(
        itertools.chain.from_iterable((9.0, next(durations)) for _ in iter(int, 1))
    )
    monkeypatch.setattr(calibration.time, "perf_counter", lambda: next(clock))
    assert calibration._gflops(lambda: None, flops=8e9, seconds=0.0) == pytest.approx(4.0)
