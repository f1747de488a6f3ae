"""Memory of tables: by hand, and what is said when it is too much."""

from __future__ import annotations

import pathlib

import pytest
import tensorflow as tf

from seed_rl import memory
from seed_rl.errors import UserError

GIB = 2**30


def test_bytes_of_a_spec_by_hand() -> None:
    spec = {
        "frames": tf.TensorSpec([121, 84, 84], tf.uint8),
        "state": (tf.TensorSpec([512], tf.float32), tf.TensorSpec([512], tf.bfloat16)),
        "scalar": tf.TensorSpec([], tf.int64),
        "none": (),
    }
    assert memory.spec_bytes(spec) == 121 * 84 * 84 + 512 * 4 + 512 * 2 + 8


def test_a_table_says_what_it_takes() -> None:
    table = memory.Table("replay", 10_000, 3 * 2**19, "--replay_buffer_size")
    assert table.nbytes == 10_000 * 3 * 2**19
    assert str(table) == "replay 14.6 GiB (10,000 x 1.5 MiB)"


TABLES = [
    memory.Table("queue", 4, GIB, "--unroll_queue_max_size"),
    memory.Table("replay", 12, GIB, "--replay_buffer_size and --unroll_length"),
]


def test_what_just_fits_is_let_through() -> None:
    memory.check_fits(TABLES, available=16 * GIB)


def test_what_does_not_fit_names_the_flags_of_the_largest() -> None:
    with pytest.raises(UserError) as error:
        memory.check_fits(TABLES, available=16 * GIB - 1)
    text = str(error.value)
    assert text.startswith("--replay_buffer_size and --unroll_length: expected tables of at most ")
    assert "queue 4.0 GiB (4 x 1.0 GiB), replay 12.0 GiB" in text
    assert text.endswith("16.0 GiB in all.")
    assert "\n" not in text


def test_available_memory_is_no_more_than_the_machine_s() -> None:
    total = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < memory.available_bytes() <= total
