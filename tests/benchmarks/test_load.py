"""The load, against real servers in this process."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import load
from benchmarks.load import KINDS, Calls, Load
from seed_rl.grpc.server import Server

NUM_CLIENTS = 3


class Served(NamedTuple):
    address: str
    rows: tf.Variable
    pid: int


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of `square`, which counts rows, `vary`, and `fail`."""
    rows = tf.Variable(0, dtype=tf.int64)
    signature = [tf.TensorSpec([None], tf.int32, "x")]

    @tf.function(input_signature=signature)
    def square(x: tf.Tensor) -> tf.Tensor:
        rows.assign_add(tf.size(x, tf.int64))
        return x * x

    @tf.function(input_signature=signature)
    def vary(x: tf.Tensor) -> tf.Tensor:
        rows.assign_add(tf.size(x, tf.int64))
        return x + tf.cast(rows, tf.int32)

    @tf.function(input_signature=signature)
    def fail(x: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.debugging.assert_less(x, 0, "too large")]):
            return tf.identity(x)

    with Server([f"unix:{tmp_path}/server"]) as server:
        for function in square, vary, fail:
            server.bind(function, max_batch_size=8)
        server.start()
        yield Served(server.addresses[0], rows, os.getpid())


def measure(served: Served, method: str, how: Load, **options: Any) -> load.Measurement:
    arguments = [(np.array([i, i + 10], np.int32),) for i in range(NUM_CLIENTS)]
    calls = Calls(served.address, method, arguments)
    return load.measure(served.address, calls, how, served.pid, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_every_client_gets_its_own_answers(served: Served, kind: str) -> None:
    measured = measure(served, "square", Load(kind, seconds=0.2, warm_up_seconds=0.05))
    expected = [[i**2, (i + 10) ** 2] for i in range(NUM_CLIENTS)]
    np.testing.assert_array_equal(measured.replies, expected)
    assert measured.changed == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_that_are_counted_are_those_that_were_sent(served: Served, kind: str) -> None:
    measured = measure(served, "square", Load(kind, seconds=0.2, warm_up_seconds=0.05))
    rows = int(served.rows)
    assert 0 < len(measured.latencies) <= measured.answered
    # The load may end before the answers to its last calls.
    assert 2 * measured.answered <= rows <= 2 * (measured.answered + NUM_CLIENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_that_change_are_counted(served: Served, kind: str) -> None:
    measured = measure(served, "vary", Load(kind, seconds=0.1, warm_up_seconds=0.0))
    assert measured.changed == measured.answered - NUM_CLIENTS


def test_a_client_that_steps_does_not_call(served: Served) -> None:
    hour = 3600.0
    measured = measure(served, "square", Load("c++", 0.1, 0.05, step_seconds=hour))
    assert measured.answered == NUM_CLIENTS
    assert measured.latency_ms(50) is None


def test_clients_that_step_go_on_calling(served: Served) -> None:
    measured = measure(served, "square", Load("c++", 0.5, 0.0, step_seconds=0.001))
    assert measured.answered > 2 * NUM_CLIENTS
    assert measured.changed == 0


def test_both_edges_of_the_measurement_are_told(served: Served) -> None:
    rows: list[int] = []
    how = Load("c++", seconds=0.2, warm_up_seconds=0.1)
    measured = measure(served, "square", how, at_edges=lambda: rows.append(int(served.rows)))
    before, after = rows
    assert 0 < before < after <= 2 * (measured.answered + NUM_CLIENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_calls_that_fail_are_an_error(
    served: Served, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="exit code 1"):
        measure(served, "fail", Load(kind, seconds=0.1, warm_up_seconds=0.0))
    assert "too large" in capfd.readouterr().err


def test_percentiles_are_values_that_were_measured() -> None:
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert load.percentile(values, 50) == 3.0
    assert load.percentile(values, 20) == 1.0
    assert load.percentile(values, 21) == 2.0
    assert load.percentile(values, 99) == 5.0
    assert load.percentile(np.arange(1.0, 201.0), 99) == 198.0


def test_latencies_are_in_milliseconds() -> None:
    measured = load.Measurement(
        seconds=2.0,
        latencies=np.array([0.001, 0.003, 0.002]),
        replies=[],
        answered=3,
        changed=0,
        server_cores=1.0,
        client_cores=0.5,
    )
    assert measured.calls_per_second == 1.5
    assert measured.latency_ms(50) == pytest.approx(2.0)


def test_measurements_together() -> None:
    def part(latencies: list[float], cores: float) -> load.Measurement:
        return load.Measurement(1.0, np.array(latencies), ["first"], 5, 1, cores, cores / 2)

    both = load.together([part([0.1, 0.2], cores=0.5), part([0.3], cores=1.5)])
    assert both.calls_per_second == 1.5
    assert both.latencies.tolist() == [0.1, 0.2, 0.3]
    assert (both.answered, both.changed) == (10, 2)
    assert (both.server_cores, both.client_cores) == (1.0, 0.5)
