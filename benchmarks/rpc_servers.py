"""The servers that rpc.py compares, all around the same tf.function."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from multiprocessing.connection import Connection

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)

import tensorflow as tf  # isort: skip

from benchmarks.grpcio_server import AsyncioServer, Binding, ThreadedServer
from seed_rl.grpc.server import Server

SEED_RL, GRPCIO_ASYNCIO, GRPCIO_THREADS = "seed_rl", "grpcio asyncio", "grpcio threads"
KINDS = (SEED_RL, GRPCIO_ASYNCIO, GRPCIO_THREADS)
BATCHED, SINGLE = "batched", "single"
FRAME = (84, 84)


@tf.function(input_signature=[tf.TensorSpec([None, *FRAME], tf.uint8, "frames")], autograph=False)
def act(frames: tf.Tensor) -> tf.Tensor:
    """Frames uint8 [N, 84, 84] to int32 [N]: sums, from which a client knows its own answer."""
    return tf.reduce_sum(tf.cast(frames, tf.int32), axis=[1, 2])


def serve(pipe: Connection, kind: str, addresses: Sequence[str], max_batch_size: int) -> None:
    """Serves `act` under two names until `pipe` is closed. The first message: the addresses.

    Args:
      pipe: see ServerProcess.
      kind: one of KINDS.
      addresses: where.
      max_batch_size: rows that a call of BATCHED may have; those of SINGLE run by themselves.
    """
    with contextlib.ExitStack() as stack:
        if kind == SEED_RL:
            server = stack.enter_context(Server(addresses))
            server.bind(act, BATCHED, max_batch_size=max_batch_size)
            server.bind(act, SINGLE)
            server.start()
            pipe.send(server.addresses)
        else:
            make = AsyncioServer if kind == GRPCIO_ASYNCIO else ThreadedServer
            bindings = {BATCHED: Binding(act, max_batch_size), SINGLE: Binding(act)}
            grpcio_server = make(addresses, bindings)
            stack.callback(grpcio_server.stop)
            pipe.send(grpcio_server.addresses)
        pipe.recv()  # there is none: this waits for the end
