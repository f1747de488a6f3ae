"""The learner's inference under synthetic environments."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import scale
from benchmarks.inference_server import Meter, Work
from benchmarks.load import Measurement
from benchmarks.scale import Line, ScaleSettings
from seed_rl.errors import UserError
from seed_rl.trajectories import EnvironmentStep, environment_step_spec
from seed_rl.types import ArraySpec, EnvironmentSpec

LINE = Line(
    num_envs=8,
    rows_per_second=400.0,
    stepping=0.9,
    p50_ms=2.0,
    p99_ms=3.0,
    rows_per_batch=8.0,
    largest_batch=8,
    busy=0.2,
    learner_cores=0.3,
    load_cores=0.1,
    learner_bytes=500_000_000,
)


def line(num_envs: int, rows_per_second: float, **fields: float) -> Line:
    return dataclasses.replace(LINE, num_envs=num_envs, rows_per_second=rows_per_second, **fields)


def test_the_table_has_a_line_for_each_number_of_environments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = ScaleSettings(
        envs="4,12", env_batch_size=4, step_ms=1.0, seconds=0.5, warm_up_seconds=0.2
    )
    scale.benchmark(settings, ["--lstm_size=8"])
    lines = capsys.readouterr().out.splitlines()
    header, _, *rows = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in lines if "|" in line
    )
    assert [row[0] for row in rows] == ["4", "12"]
    assert {len(row) for row in rows} == {len(header)}
    for row, largest_allowed in zip(rows, (4, 8), strict=True):
        cells = dict(zip(header, row, strict=True))
        assert float(cells["rows/s"].replace(",", "")) > 0
        assert 4 <= float(cells["rows/batch"]) <= int(cells["largest batch"]) <= largest_allowed
        assert int(cells["largest batch"]) % 4 == 0
        assert int(cells["learner MB"].replace(",", "")) > 100
    assert "aturate" in lines[-1]


def test_rows_that_the_learner_counts_are_those_that_clients_were_answered() -> None:
    settings = ScaleSettings(env_batch_size=2, step_ms=0.0, seconds=0.5, warm_up_seconds=0.2)
    flags = ["--lstm_size=8", "--intra_op_threads=1"]
    measured, work = scale.run(settings, num_envs=6, flags=flags)[:2]
    assert len(measured.replies) == 3
    assert all(reply.shape == (2,) and reply.dtype == np.int32 for reply in measured.replies)
    # What was answered while measuring, but for what was under way at either end of that time.
    assert work.rows <= 2 * (measured.answered + 3)
    assert 0 < work.batches <= work.rows
    assert work.largest <= 4  # half of the environments, in whole calls
    assert work.busy_seconds > 0


def test_a_meter_counts_what_a_function_does() -> None:
    spec = environment_step_spec(EnvironmentSpec(ArraySpec.of((2,), np.uint8), 3), (None,))

    @tf.function(
        input_signature=(
            tf.TensorSpec([None], tf.int32, "env_ids"),
            tf.TensorSpec([None], tf.int64, "run_ids"),
            spec,
        )
    )
    def function(env_ids: tf.Tensor, run_ids: tf.Tensor, time_step: EnvironmentStep) -> tf.Tensor:
        return env_ids * 2

    meter = Meter()
    metered = meter.metered(function)
    for rows in 3, 5:
        time_step = tf.nest.map_structure(
            lambda leaf, rows=rows: tf.zeros([rows, *leaf.shape[1:]], leaf.dtype), spec
        )
        actions = metered(tf.range(rows), tf.ones([rows], tf.int64), time_step)
        assert actions.numpy().tolist() == list(range(0, 2 * rows, 2))
    work = meter.take()
    assert work[:3] == (2, 8, 5)
    assert work.busy_seconds > 0
    assert meter.take() == Work(0, 0, 0, 0.0)


def test_each_environment_belongs_to_one_actor() -> None:
    arguments = scale.actors_arguments(num_envs=12, env_batch_size=4)
    env_ids = np.concatenate([ids for ids, _, _ in arguments])
    assert len(arguments) == 3
    assert env_ids.tolist() == list(range(12))
    for ids, run_ids, time_step in arguments:
        assert len(ids) == len(run_ids) == len(time_step.observation) == 4


def test_what_stands_in_a_line() -> None:
    measured = Measurement(
        seconds=2.0,
        latencies=np.array([0.01, 0.02, 0.03, 0.04]),
        replies=[],
        answered=9,
        changed=0,
        server_cores=1.5,
        client_cores=0.25,
    )
    settings = ScaleSettings(env_batch_size=8, step_ms=100.0)
    work = Work(batches=3, rows=36, largest=16, busy_seconds=0.5)
    assert scale.line(settings, 16, measured, work, memory=7) == Line(
        num_envs=16,
        rows_per_second=16.0,
        stepping=pytest.approx(0.1),  # one step of 0.1 s in each second
        p50_ms=pytest.approx(20.0),
        p99_ms=pytest.approx(40.0),
        rows_per_batch=12.0,
        largest_batch=16,
        busy=0.25,
        learner_cores=1.5,
        load_cores=0.25,
        learner_bytes=7,
    )


def test_environments_that_mostly_step_do_not_saturate() -> None:
    text = scale.conclusion([line(8, 400), line(16, 800, stepping=0.8)], cores=2)
    assert text == "Does not saturate: 16 environments step 80% of their time."


def test_saturation_is_where_rows_stop_to_grow() -> None:
    lines = [
        line(8, 400),
        line(16, 790, learner_cores=1.7, load_cores=0.2),
        line(32, 950, stepping=0.2),
    ]
    text = scale.conclusion(lines, cores=2)
    assert text.startswith("Saturates at 16 environments with 790 rows/s")
    assert "the cores are full (learner 1.70, load 0.20, of 2 cores)" in text
    assert "32 of them step 20.0%" in text


def test_limits_other_than_the_cores() -> None:
    one_by_one = scale.limit(line(8, 1, busy=0.95, learner_cores=1.0), cores=4)
    assert one_by_one.startswith("the inference function runs 95% of the time")
    assert scale.limit(line(8, 1, busy=0.5), cores=4).startswith("neither the cores")


@pytest.mark.parametrize("envs", ["8,x", "0", "12", ""])
def test_a_mistake_names_the_flag(envs: str) -> None:
    with pytest.raises(UserError, match="--envs"):
        _ = ScaleSettings(envs=envs).env_counts
