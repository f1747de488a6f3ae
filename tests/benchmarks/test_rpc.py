"""The comparison of servers."""

import math
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import rpc, rpc_servers
from benchmarks.grpcio_server import Binding, ThreadedServer
from benchmarks.load import Load, Measurement
from benchmarks.rpc import RpcSettings, RunningServer, Setting
from benchmarks.rpc_servers import BATCHED, FRAME, KINDS, SEED_RL, SINGLE
from benchmarks.server_process import ServerProcess
from seed_rl.errors import UserError

QUICK = Load("c++", seconds=0.1, warm_up_seconds=0.02)


def serve_liar(pipe: Connection, address: str) -> None:
    """Serves what gives every client the first row's answer."""

    @tf.function(input_signature=[tf.TensorSpec([None, *FRAME], tf.uint8, "frames")])
    def act(frames: tf.Tensor) -> tf.Tensor:
        return tf.zeros_like(rpc_servers.act(frames))

    server = ThreadedServer([address], {BATCHED: Binding(act, 4)})
    pipe.send(server.addresses)
    pipe.recv()


def measurement(latencies: list[float], seconds: float = 1.0) -> Measurement:
    return Measurement(
        seconds=seconds,
        latencies=np.array(latencies),
        replies=[],
        answered=len(latencies),
        changed=0,
        server_cores=0.6,
        client_cores=0.2,
    )


def test_all_servers_give_every_client_its_own_answers() -> None:
    with rpc.servers(max_batch_size=4) as running:
        for setting in (
            Setting(QUICK, "unix", BATCHED, 6),
            Setting(QUICK, "tcp", SINGLE, 2),
        ):
            measured = rpc.compare(running, setting, rows_per_call=2)
            expected = [
                frames.sum(axis=(1, 2)) for frames in rpc.client_frames(setting.num_clients, 2)
            ]
            assert list(measured) == list(KINDS)
            for result in measured.values():
                np.testing.assert_array_equal(result.replies, expected)
                assert result.answered >= setting.num_clients


def test_a_wrong_answer_ends_the_benchmark(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/server"
    with ServerProcess(serve_liar, address) as process:
        running = {"liar": RunningServer(process, {"unix": address})}
        with pytest.raises(RuntimeError, match="liar"):
            rpc.compare(running, Setting(QUICK, "unix", BATCHED, 2), rows_per_call=1)


def test_no_two_clients_send_the_same_sum() -> None:
    sums = [int(frames.sum()) for frames in rpc.client_frames(64, 1)]
    assert len(set(sums)) == 64


def test_the_table_has_a_line_for_each_server_and_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = RpcSettings(clients="1,2", rounds=2, seconds=0.05, warm_up_seconds=0.0)
    rpc.benchmark(settings)
    lines = capsys.readouterr().out.splitlines()
    header, _, *rows = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in lines if "|" in line
    )
    assert len(rows) == len(KINDS) * 2 * 2 * 2
    assert {len(row) for row in rows} == {len(header)}
    found = {tuple(row[:5]) for row in rows}
    assert found == {
        ("c++", address, method, clients, kind)
        for address in ("unix", "tcp")
        for method in (BATCHED, SINGLE)
        for clients in ("1", "2")
        for kind in KINDS
    }
    # One conclusion for each setting with the most clients.
    assert sum(line.startswith("- 2 clients") for line in lines) == 4


def test_figures_of_a_line() -> None:
    result = measurement([0.001, 0.002, 0.003, 0.004], seconds=0.5)
    assert rpc.figures(result, rows_per_call=3) == pytest.approx(
        [8.0, 24.0, 2.0, 4.0, 25_000.0, 0.2e6 / 24]
    )


def test_figures_of_a_server_that_answered_nothing() -> None:
    assert rpc.figures(measurement([]), rows_per_call=1) == [0.0, 0.0, None, None, None, None]


def test_how_many_times_as_fast_is_the_median_of_the_rounds() -> None:
    ours = [12, 12, 30]  # the machine was fast in the last round, but slow again for the other
    theirs = [3, 6, 3]
    rounds = [
        {
            SEED_RL: measurement([0.1] * our_calls),
            "slow": measurement([0.1] * their_calls),
            "dead": measurement([]),
        }
        for our_calls, their_calls in zip(ours, theirs, strict=True)
    ]
    assert rpc.compared_to_seed_rl(rounds) == {"slow": 4.0, "dead": math.inf}


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({"a": 3.0, "b": 9.0}, "3.00 times a, 9.00 times b: reached"),
        ({"a": 2.96, "b": 9.0}, "2.96 times a, 9.00 times b: not reached"),
    ],
)
def test_the_conclusion_is_about_the_best_of_the_others(
    ratios: dict[str, float], expected: str
) -> None:
    text = rpc.conclusion(Setting(QUICK, "unix", BATCHED, 64), ratios)
    assert text == f"- 64 clients (c++ load, unix, batched): {expected}"


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"clients": "1,x"}, "--clients"),
        ({"clients": "0"}, "--clients"),
        ({"load": "c++,java"}, "--load"),
        ({"rows_per_call": 33}, "--rows_per_call"),
    ],
)
def test_a_mistake_names_the_flag(options: dict, flag: str) -> None:
    with pytest.raises(UserError, match=flag):
        settings = RpcSettings(**options)
        _ = settings.client_counts, settings.loads
