"""What --precision means, on machines described by their parts."""

from collections.abc import Iterable

import pytest
import tensorflow as tf

from seed_rl import precision


@pytest.fixture
def describe(monkeypatch: pytest.MonkeyPatch):
    """Describes the machine: the processor's features, the GPUs' capabilities, TPU cores."""

    def describe(
        features: Iterable[str] = (), gpus: Iterable[tuple[int, int]] = (), tpus: int = 0
    ) -> None:
        devices = {"GPU": list(gpus), "TPU": ["core"] * tpus}
        monkeypatch.setattr(precision, "cpu_features", lambda: frozenset(features))
        monkeypatch.setattr(tf.config, "list_physical_devices", devices.__getitem__)
        monkeypatch.setattr(
            tf.config.experimental,
            "get_device_details",
            lambda gpu: {"compute_capability": gpu},
        )

    return describe


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_named_precision_is_taken_everywhere(describe, name: str) -> None:
    for features in [], ["amx_bf16"]:
        describe(features)
        assert precision.compute_dtype(name) == tf.as_dtype(name)


@pytest.mark.parametrize("feature", ["avx512_bf16", "amx_bf16", "bf16"])
def test_auto_is_bfloat16_on_processors_that_multiply_it(describe, feature: str) -> None:
    describe(["fpu", feature])
    assert precision.compute_dtype("auto") == tf.bfloat16


def test_auto_is_float32_on_other_processors(describe) -> None:
    describe(["fpu", "avx512f", "avx2"])
    assert precision.compute_dtype("auto") == tf.float32


@pytest.mark.parametrize(
    ("gpus", "dtype"),
    [
        ([(7, 0)], tf.float32),  # V100
        ([(7, 5)], tf.float32),  # T4
        ([(8, 0)], tf.bfloat16),  # A100
        ([(8, 0), (7, 5)], tf.float32),  # all of them have to
        ([(10, 0)], tf.bfloat16),
    ],
)
def test_gpus_decide_before_the_processor(describe, gpus, dtype: tf.DType) -> None:
    describe(["amx_bf16"], gpus)
    assert precision.compute_dtype("auto") == dtype


def test_auto_is_bfloat16_on_a_tpu(describe) -> None:
    describe(tpus=8)
    assert precision.compute_dtype("auto") == tf.bfloat16
