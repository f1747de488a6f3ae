"""Instructions of the language levels as numbers."""

from __future__ import annotations

import re
import zlib

import numpy as np

PADDING = 0
NUM_BUCKETS = 1_000  # IMPALA (arXiv 1802.01561), section 5.3


def word_ids(instruction: str, num_words: int) -> np.ndarray:
    """int32 [num_words]: for each word its bucket, 1 to NUM_BUCKETS, then PADDING.

    Case and punctuation do not count, and words beyond num_words are dropped. A word's bucket is
    the same in all processes and versions (Python's own hash is not), so that a network can be
    trained in one run and used in another.
    """
    ids = np.full(num_words, PADDING, np.int32)
    words = re.findall(r"\w+", instruction.lower())[:num_words]
    ids[: len(words)] = [1 + zlib.crc32(word.encode()) % NUM_BUCKETS for word in words]
    return ids
