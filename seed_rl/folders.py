"""Folders of this machine or of a bucket (gs://)."""

from __future__ import annotations

import tensorflow as tf


def remove(folder: str) -> None:
    """Removes a folder with all that is in it; does nothing where there is none."""
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
