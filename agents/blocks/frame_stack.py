"""Frame stacking by the learner, so that wire, tables and replay hold each frame once."""

from __future__ import annotations

import tensorflow as tf

MAX_STACK_SIZE = 4  # a pixel's history is packed into the bytes of one int32


def initial_history(batch_size: int, frame_shape: tuple[int, ...]) -> tf.Tensor:
    """The packed history before an episode: int32 [B, H, W]."""
    return tf.zeros([batch_size, *frame_shape], tf.int32)


def stack_frames(
    frames: tf.Tensor, is_first: tf.Tensor, history: tf.Tensor, stack_size: int
) -> tf.Tensor:
    """Puts each frame and its predecessors into channels, oldest first.

    At FIRST the missing predecessors are the first frame itself, as in Gymnasium's
    FrameStackObservation.

    Args:
      frames: uint8 [T, B, H, W].
      is_first: bool [T, B], whether an episode starts with this frame.
      history: int32 [B, H, W], the packed history after the last frame before these.
      stack_size: 1 to 4.

    Returns:
      The stacks uint8 [T, B, H, W, stack_size], and the packed history int32 [B, H, W] after the
      last frame: the newest frame in the highest byte, the ones before in the lower bytes.
    """
    # Compiled it is one pass over the frames instead of two dozen. But XLA compiles for each shape
    # anew, and those of inference batches vary; theirs is a single time step, which is cheap.
    is_unroll = frames.shape.is_fully_defined() and frames.shape[0] > 1
    pack = _pack_compiled if is_unroll else _pack
    packed = pack(frames, is_first, history, min(stack_size - 1, frames.shape[0]))
    stacks = tf.bitcast(packed, tf.uint8)
    return stacks[..., MAX_STACK_SIZE - stack_size :], packed[-1]


def _pack(frames: tf.Tensor, is_first: tf.Tensor, history: tf.Tensor, rounds: int) -> tf.Tensor:
    """The packed histories int32 [T, B, H, W].

    Round k adds the k-th predecessor to all time steps at once. The history before has all of its
    own already, so one time step needs one round.
    """
    newest = tf.bitwise.left_shift(tf.cast(frames, tf.int32), 24)
    repeated = tf.cast(frames, tf.int32) * 0x01010101
    is_first = is_first[..., tf.newaxis, tf.newaxis]
    packed = newest
    for _ in range(rounds):
        before = tf.concat([history[tf.newaxis], packed[:-1]], axis=0)
        older = tf.bitwise.right_shift(tf.bitcast(before, tf.uint32), 8)
        packed = tf.where(
            is_first, repeated, tf.bitwise.bitwise_or(newest, tf.bitcast(older, tf.int32))
        )
    return packed


_pack_compiled = tf.function(_pack, autograph=False, jit_compile=True)
