"""What the learner's settings come to."""

from __future__ import annotations

import pytest

from seed_rl.errors import UserError
from seed_rl.learner_settings import LearnerSettings


@pytest.mark.parametrize(
    ("num_envs", "num_devices", "rows"),
    [(8, 1, 8), (16, 1, 8), (24, 1, 16), (4096, 1, 2048), (64, 2, 16), (64, 3, 16), (64, 4, 8)],
)
def test_half_of_a_device_s_environments_in_whole_calls(
    num_envs: int, num_devices: int, rows: int
) -> None:
    assert LearnerSettings(num_envs=num_envs).inference_rows(8, num_devices) == rows


def test_a_call_fits_into_an_inference_batch() -> None:
    assert LearnerSettings(inference_batch_size=8).inference_rows(8, 1) == 8
    with pytest.raises(UserError, match="--inference_batch_size: expected at least the 8"):
        LearnerSettings(inference_batch_size=7).inference_rows(8, 1)
