"""The prioritized replay: proportions, weights by hand, the ring, and saving."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import pytest

from seed_rl import replay as replay_module
from seed_rl.errors import UserError
from seed_rl.replay import PrioritizedReplay, ReplaySettings
from seed_rl.types import ArraySpec

SPECS = [ArraySpec.of((2,), np.uint8), ArraySpec.of((), np.float32)]
PLAIN = ReplaySettings(
    replay_buffer_min_size=1,
    replay_buffer_size=4,
    priority_exponent=1.0,
    importance_sampling_exponent=1.0,
)


def make(specs: list[ArraySpec] = SPECS, **settings: Any) -> PrioritizedReplay:
    return PrioritizedReplay(specs, dataclasses.replace(PLAIN, **settings), seed=0)


def items(*numbers: int) -> list[np.ndarray]:
    """Items all of whose elements are the given numbers."""
    return [np.array([[n, n] for n in numbers], np.uint8), np.array(numbers, np.float32)]


def counts(replay: PrioritizedReplay, num_items: int, num_draws: int = 20_000) -> np.ndarray:
    """How often each item number below num_items is drawn."""
    return np.bincount(replay.sample(num_draws).arrays[0][:, 0], minlength=num_items)


def chi_square(observed: np.ndarray, probabilities: Any) -> float:
    expected = observed.sum() * np.asarray(probabilities)
    return float(np.sum((observed - expected) ** 2 / expected))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_items_are_drawn_in_proportion_to_priority_to_the_exponent(exponent: float) -> None:
    priorities = np.array([1.0, 2.0, 3.0, 4.0])
    replay = make(priority_exponent=exponent)
    replay.insert(items(0, 1, 2, 3), priorities)
    masses = priorities**exponent
    assert chi_square(counts(replay, 4), masses / masses.sum()) < 16.3  # p = 0.001, 3 degrees


def test_an_item_is_drawn_whole() -> None:
    replay = make()
    replay.insert(items(5, 9), np.ones(2))
    pairs, scalars = replay.sample(100).arrays
    np.testing.assert_array_equal(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(pairs[:, 0], scalars)
    assert (pairs.dtype, scalars.dtype) == (np.uint8, np.float32)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_importance_weights_by_hand(exponent: float) -> None:
    """Probabilities 1/6, 2/6, 3/6 of three items: weights (1 / (3 P))^exponent over the largest."""
    replay = make(importance_sampling_exponent=exponent)
    replay.insert(items(0, 1, 2), np.array([1.0, 2.0, 3.0]))
    sample = replay.sample(200)
    expected = np.array([2.0, 1.0, 2 / 3]) ** exponent
    drawn = sample.arrays[0][:, 0]
    assert set(drawn) == {0, 1, 2}
    np.testing.assert_allclose(sample.weights, (expected / expected.max())[drawn], rtol=1e-6)
    assert sample.weights.dtype == np.float32


def test_weights_are_relative_to_the_largest_of_the_draw() -> None:
    replay = make()
    replay.insert(items(0, 1), np.array([1e-9, 1.0]))
    np.testing.assert_array_equal(replay.sample(3).weights, [1.0, 1.0, 1.0])


def test_the_oldest_make_room_past_capacity() -> None:
    replay = make()
    for number in range(6):
        replay.insert(items(number), np.ones(1))
        assert len(replay) == min(number + 1, 4)
    observed = counts(replay, 6)
    assert not observed[:2].any()
    assert chi_square(observed[2:], [0.25] * 4) < 16.3


def test_an_insertion_may_cross_the_ring_s_end() -> None:
    replay = make()
    replay.insert(items(0, 1, 2), np.ones(3))
    replay.insert(items(3, 4, 5), np.array([1.0, 2.0, 3.0]))
    observed = counts(replay, 6)
    assert not observed[:2].any()
    assert chi_square(observed[2:], np.array([1, 1, 2, 3]) / 7) < 16.3


def test_updated_priorities_change_the_draws_of_their_items() -> None:
    replay = make(priority_exponent=0.5)
    replay.insert(items(0, 1, 2, 3), np.ones(4))
    replay.insert(items(4, 5), np.ones(2))
    sample = replay.sample(500)
    for number, priority in (3, 25.0), (4, 4.0):
        key = sample.keys[sample.arrays[0][:, 0] == number][:1]
        replay.update_priorities(key, np.array([priority]))
    assert chi_square(counts(replay, 6)[2:], np.array([1, 5, 2, 1]) / 9) < 16.3


def test_items_that_have_left_are_passed_over() -> None:
    """Items 4 and 5 now are where 0 and 1 were; the late priorities of 0 and 1 are not theirs."""
    replay = make()
    replay.insert(items(0, 1, 2, 3), np.ones(4))
    sample = replay.sample(500)
    keys = np.array([sample.keys[sample.arrays[0][:, 0] == n][0] for n in range(4)])
    replay.insert(items(4, 5), np.ones(2))
    replay.update_priorities(keys, np.array([100.0, 100.0, 3.0, 1.0]))
    assert chi_square(counts(replay, 6)[2:], np.array([3, 1, 1, 1]) / 6) < 16.3


def test_priority_zero_is_never_drawn_beside_others() -> None:
    replay = make()
    replay.insert(items(0, 1, 2, 3), np.array([0.0, 1.0, 0.0, 0.0]))
    assert counts(replay, 4, 1000).tolist() == [0, 1000, 0, 0]


def test_all_priorities_zero_draw_uniformly() -> None:
    replay = make()
    replay.insert(items(0, 1, 2), np.zeros(3))
    assert chi_square(counts(replay, 3), [1 / 3] * 3) < 13.8  # p = 0.001, 2 degrees
    np.testing.assert_array_equal(replay.sample(10).weights, np.ones(10))


def test_a_seed_repeats_the_draws() -> None:
    draws = []
    for _ in range(2):
        replay = make()
        replay.insert(items(0, 1, 2), np.array([1.0, 2.0, 3.0]))
        draws.append(replay.sample(50).keys)
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("numbers", [[0, 1, 2], [0, 1, 2, 3, 4, 5]], ids=["growing", "full"])
def test_a_saved_replay_goes_on_where_it_was(
    tmp_path: pathlib.Path, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "_ROWS_READ", 2)  # of 3 or 4
    replay, loaded = make(), make()
    for number in numbers:
        replay.insert(items(number), np.array([number + 1.0]))
    replay.save(str(tmp_path))
    loaded.load(str(tmp_path))
    for each in replay, loaded:
        each.insert(items(7), np.array([8.0]))
    one, other = replay.sample(200), loaded.sample(200)
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.weights, other.weights)
    for array, same in zip(one.arrays, other.arrays, strict=True):
        np.testing.assert_array_equal(array, same)


def test_loading_into_another_capacity_names_the_flag(tmp_path: pathlib.Path) -> None:
    replay = make()
    replay.insert(items(0, 1, 2, 3), np.ones(4))
    replay.insert(items(4), np.ones(1))
    replay.save(str(tmp_path))
    with pytest.raises(UserError, match=r"--replay_buffer_size: .* holds 4 .* size of 3"):
        make(replay_buffer_size=3).load(str(tmp_path))


def test_loading_other_arrays_is_refused(tmp_path: pathlib.Path) -> None:
    replay = make()
    replay.insert(items(0), np.ones(1))
    replay.save(str(tmp_path))
    other = make(specs=[ArraySpec.of((3,), np.uint8), SPECS[1]])
    with pytest.raises(UserError, match=r"uint8 \(2,\), expected uint8 \(3,\)"):
        other.load(str(tmp_path))


def test_loading_another_number_of_arrays_is_refused(tmp_path: pathlib.Path) -> None:
    """What an unroll holds changes with the versions of this program."""
    replay = make()
    replay.insert(items(0), np.ones(1))
    replay.save(str(tmp_path))
    other = make(specs=[*SPECS, SPECS[1]])
    with pytest.raises(
        UserError, match=rf"expected .* {len(SPECS) + 1} arrays .* got {len(SPECS)}"
    ):
        other.load(str(tmp_path))


def test_a_minimum_above_the_size_is_refused():
    with pytest.raises(UserError, match="--replay_buffer_min_size: expected at most the 10 "):
        ReplaySettings(replay_buffer_size=10, replay_buffer_min_size=11)
