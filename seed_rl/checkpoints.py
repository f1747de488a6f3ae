"""Checkpoints: what a learner needs to go on after it was killed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from seed_rl import folders
from seed_rl.errors import UserError
from seed_rl.replay import PrioritizedReplay

_MAX_TO_KEEP = 3


class Checkpoints:
    """Saves and restores the trained state, in <logdir>/checkpoints.

    TensorFlow writes a checkpoint's files under temporary names and names it in its index file
    last, so that a learner killed while it saves leaves the one before.

    Args:
      directory: where they are kept, of this machine or a bucket's (gs://); the newest three stay.
      replay: saved beside them if given, the newest only.
      objects: what else to save, by name: tf.Modules, optimizers, variables.
    """

    def __init__(
        self,
        directory: str,
        replay: PrioritizedReplay | None = None,
        **objects: Any,
    ):
        self._directory = directory
        self._replay = replay
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, directory, max_to_keep=_MAX_TO_KEEP, checkpoint_name="checkpoint"
        )

    def save(self) -> str:
        """Saves and returns the checkpoint's path."""
        number = int(self._checkpoint.save_counter) + 1
        if self._replay is not None:
            self._save_replay(self._replay, self._replay_directory(number))
        path = self._manager.save(checkpoint_number=number)
        self._drop_other_replays(number)  # only now: the checkpoint before needed its own
        return path

    def restore(self, init_checkpoint: str = "") -> str | None:
        """Restores the newest checkpoint, or if there is none, `init_checkpoint`; returns its path.

        Raises:
          UserError: the checkpoint does not exist or does not fit the objects.
        """
        path = self._manager.latest_checkpoint
        if path is None and init_checkpoint:
            if not tf.io.gfile.exists(f"{init_checkpoint}.index"):
                raise UserError(
                    "--init_checkpoint: expected a checkpoint such as checkpoints/checkpoint-7, "
                    f"got {init_checkpoint!r}, which does not exist."
                )
            path = init_checkpoint
        if path is not None:
            self._restore(path)
        return path

    def _restore(self, path: str) -> None:
        status = None
        try:
            status = self._checkpoint.restore(path)
            # In one direction only: what else a checkpoint has is passed over.
            status.assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            if status is not None:
                status.expect_partial()  # or TensorFlow would list each difference at exit
            reason = str(error).splitlines()[0]
            raise UserError(
                f"--logdir or --init_checkpoint: the checkpoint {path} does not fit the "
                f"network, environment and optimizer that the flags describe ({reason})."
            ) from error
        replay = self._replay_directory(int(self._checkpoint.save_counter))
        if self._replay is not None and tf.io.gfile.exists(replay):
            self._replay.load(replay, tf.io.gfile.GFile)

    def _save_replay(self, replay: PrioritizedReplay, directory: str) -> None:
        """Writes the replay of a checkpoint that follows, without which nobody reads it."""
        folders.remove(directory)  # what a killed learner may have left
        tf.io.gfile.makedirs(directory)
        replay.save(directory, tf.io.gfile.GFile)

    def _drop_other_replays(self, number: int) -> None:
        for replay in tf.io.gfile.glob(f"{self._directory}/replay-*"):
            if replay != self._replay_directory(number):
                folders.remove(replay)

    def _replay_directory(self, number: int) -> str:
        return f"{self._directory}/replay-{number}"
