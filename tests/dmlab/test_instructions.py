import subprocess
import sys

import numpy as np

from dmlab.instructions import NUM_BUCKETS, word_ids
from tests.dmlab.conftest import REPOSITORY


def test_words_then_padding() -> None:
    ids = word_ids("123456789 go", 4)
    assert ids.dtype == np.int32
    # Their CRC-32 are 3421780262 (the algorithm's published check value) and 3060306774.
    assert ids.tolist() == [263, 775, 0, 0]


def test_case_and_punctuation_do_not_count() -> None:
    plain = word_ids("is there a red ball", 8)
    np.testing.assert_array_equal(word_ids("Is there a RED ball?", 8), plain)
    np.testing.assert_array_equal(word_ids(" is  there: a red-ball", 8), plain)
    assert (word_ids("is there a blue ball", 8) != plain).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


def test_words_beyond_the_limit_are_dropped() -> None:
    assert word_ids("a b c d", 2).tolist() == word_ids("a b", 2).tolist()


def test_no_instruction() -> None:
    assert word_ids("", 3).tolist() == [0, 0, 0]


def test_ids_fit_the_embedding() -> None:
    ids = word_ids(" ".join(f"word{i}" for i in range(20_000)), 20_000)
    assert ids.min() == 1
    assert ids.max() == NUM_BUCKETS
    assert len(np.unique(ids)) == NUM_BUCKETS


def test_ids_are_the_same_in_every_process() -> None:
    code = "from dmlab.instructions import word_ids; print(word_ids('pick up the hat', 4).tolist())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {str(word_ids("pick up the hat", 4).tolist())}
