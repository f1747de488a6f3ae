"""Which devices train and infer."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

from seed_rl.devices import choose_devices, split_devices, training_strategy
from seed_rl.errors import UserError
from seed_rl.learner_settings import DeviceSettings


def new_process_prints(program: str) -> str:
    """Of a process whose TensorFlow has not been configured like this one's."""
    imports = (
        "import seed_rl\n"
        "import tensorflow as tf\n"
        "from seed_rl.devices import choose_devices\n"
        "from seed_rl.learner_settings import DeviceSettings\n"
    )
    command = [sys.executable, "-c", imports + program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    return result.stdout.strip()


@pytest.mark.parametrize(
    "devices, num_training, training, inference",
    [
        ("a", 1, "a", "a"),  # the only one does both
        ("ab", 1, "a", "b"),
        ("abcd", 3, "abc", "d"),
        ("abcd", 1, "a", "bcd"),
        ("ab", 2, "ab", "b"),  # none is left over: the last does both
    ],
)
def test_the_first_train_and_the_others_infer(
    devices: str, num_training: int, training: str, inference: str
) -> None:
    result = split_devices(tuple(devices), num_training, "--num_training_gpus")
    assert result == (tuple(training), tuple(inference))


def test_more_than_there_are_names_the_flag() -> None:
    with pytest.raises(UserError, match=r"--num_training_gpus: expected at most 2 .*got 3"):
        split_devices(("a", "b"), 3, "--num_training_gpus")


def test_without_flags_a_machine_without_accelerators_uses_its_cpu() -> None:
    if tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"):
        pytest.skip("this machine has accelerators")
    devices = choose_devices(DeviceSettings())
    assert devices.strategy.num_replicas_in_sync == 1
    assert devices.inference == ("/cpu:0",)
    assert not devices.compiled


@pytest.mark.parametrize(
    "training, inference, replicas, expected",
    [
        ("/cpu:0,/cpu:1", "/cpu:2", 2, ("/cpu:2",)),
        ("/cpu:1", "", 1, ("/cpu:1",)),
        ("/cpu:0, /cpu:1", "", 2, ("/cpu:1",)),
        ("/cpu:0", "/cpu:1,/cpu:2", 1, ("/cpu:1", "/cpu:2")),
        ("/device:CPU:1", "/CPU:0", 1, ("/CPU:0",)),
    ],
)
def test_flags_name_devices(
    training: str, inference: str, replicas: int, expected: tuple[str, ...]
) -> None:
    settings = DeviceSettings(training_devices=training, inference_devices=inference)
    devices = choose_devices(settings)
    assert devices.strategy.num_replicas_in_sync == replicas
    assert devices.inference == expected


@pytest.mark.parametrize("threads", [0, 3])  # 0: TensorFlow's own choice
def test_flag_sets_the_threads_of_an_operation(threads: int) -> None:
    printed = new_process_prints(
        f"choose_devices(DeviceSettings(intra_op_threads={threads}))\n"
        "print(tf.config.threading.get_intra_op_parallelism_threads())\n"
    )
    assert printed == str(threads)


@pytest.mark.parametrize("flag", ["training_devices", "inference_devices"])
@pytest.mark.parametrize("name", ["/gpu:7", "nonsense", "cpu"])
def test_an_unknown_device_names_the_flag_and_those_there_are(flag: str, name: str) -> None:
    with pytest.raises(
        UserError, match=rf"--{flag}: expected different devices out of /cpu:0, .*got {name}"
    ):
        choose_devices(DeviceSettings(**{"training_devices": "/cpu:0", flag: name}))


def test_inference_devices_alone_are_refused() -> None:
    with pytest.raises(UserError, match="--inference_devices: expected --training_devices"):
        choose_devices(DeviceSettings(inference_devices="/cpu:1"))


def test_replicas_are_where_they_were_asked_to_be() -> None:
    one, two = training_strategy(("/cpu:1",)), training_strategy(("/cpu:0", "/cpu:2"))
    assert [each[-5:] for each in one.extended.worker_devices] == ["CPU:1"]
    assert [each[-5:] for each in two.extended.worker_devices] == ["CPU:0", "CPU:2"]


def test_logical_cpus_come_with_their_names() -> None:
    printed = new_process_prints(
        "devices = choose_devices(DeviceSettings(training_devices='/cpu:0,/cpu:1',"
        " inference_devices='/cpu:2'))\n"
        "print(devices.strategy.num_replicas_in_sync, devices.inference)\n"
    )
    assert printed == "2 ('/cpu:2',)"


def test_a_device_named_twice_is_refused():
    settings = DeviceSettings(training_devices="/cpu:0,/CPU:0")
    with pytest.raises(UserError, match="--training_devices: expected different devices"):
        choose_devices(settings)
