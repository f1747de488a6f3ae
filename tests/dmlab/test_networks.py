"""The networks on random images and instructions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from dmlab.env import DMLabSettings, spec
from dmlab.instructions import word_ids
from dmlab.network_settings import NetworkSettings
from dmlab.networks import InstructionReader, actor_critic, dueling
from seed_rl.network import Network
from seed_rl.trajectories import TimeStep

SETTINGS = DMLabSettings(width=96, height=72, max_instruction_words=5)
READING = dataclasses.replace(SETTINGS, instruction=True)
SMALL = NetworkSettings(torso="shallow", lstm_size=32)
STEPS, ENVS = 2, 3


def time_step(*instructions: str) -> TimeStep:
    """STEPS steps of ENVS environments in the middle of an episode, one instruction for each."""
    rng = np.random.default_rng(0)
    image = tf.constant(rng.integers(0, 256, (STEPS, ENVS, 72, 96, 3), np.uint8))
    observation: object = image
    if instructions:
        words = np.stack([word_ids(text, READING.max_instruction_words) for text in instructions])
        observation = {"image": image, "instruction": tf.constant(np.stack([words] * STEPS))}
    ones = tf.ones([STEPS, ENVS])
    return TimeStep(tf.ones([STEPS, ENVS], tf.int32), ones, ones, observation)


def run(network: Network, step: TimeStep) -> object:
    outputs, _ = network(step, tf.zeros([STEPS, ENVS], tf.int32), network.initial_state(ENVS))
    return outputs


@pytest.mark.parametrize("torso", ["shallow", "deep"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_outputs(torso: str, dtype: tf.DType) -> None:
    settings = NetworkSettings(torso=torso, lstm_size=16)
    outputs = run(actor_critic(spec(READING), settings, dtype), time_step("a b", "", "c d e f g"))
    assert outputs.policy_logits.shape == (STEPS, ENVS, 9)
    assert outputs.value.shape == (STEPS, ENVS)
    assert {x.dtype for x in outputs} == {tf.float32}
    q_values = run(dueling(spec(SETTINGS), settings, dtype), time_step())
    assert q_values.shape == (STEPS, ENVS, 9)


def test_sizes_are_impalas() -> None:
    network = actor_critic(spec(READING), NetworkSettings(), tf.float32)
    shapes = sorted(
        tuple(variable.shape)
        for variable in network.trainable_variables
        if len(variable.shape) == 2
    )
    assert shapes == sorted(
        [
            (1_001, 20),  # embedding, row 0 for the padding
            (20, 4 * 64),  # LSTM over words
            (64, 4 * 64),
            (9 * 12 * 32, 256),  # the image, three times halved
            (256 + 64 + 1 + 9, 4 * 256),  # LSTM over image, instruction, reward, action
            (256, 4 * 256),
            (256, 9),
            (256, 1),
        ]
    )


def test_instruction_reaches_the_outputs_of_its_environment_only() -> None:
    network = actor_critic(spec(READING), SMALL, tf.float32)
    one = run(network, time_step("go to the hat", "pick up", ""))
    other = run(network, time_step("go to the ball", "pick up", ""))
    changed = (one.value != other.value).numpy()
    assert changed[:, 0].all()
    assert not changed[:, 1:].any()


def test_all_variables_are_trained() -> None:
    network = actor_critic(spec(READING), SMALL, tf.float32)
    with tf.GradientTape() as tape:
        outputs = run(network, time_step("go to the hat", "pick up", ""))
        loss = tf.reduce_sum(outputs.value) + tf.reduce_sum(outputs.policy_logits**2)
    gradients = tape.gradient(loss, network.trainable_variables)
    for variable, gradient in zip(network.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.name
        assert tf.reduce_any(tf.convert_to_tensor(gradient) != 0), variable.name


def read(reader: InstructionReader, *rows: list[int]) -> np.ndarray:
    return reader(tf.constant(rows, tf.int32)).numpy()


def test_padding_behind_the_last_word_changes_nothing() -> None:
    reader = InstructionReader(tf.float32)
    short = read(reader, [7, 8], [9, 0])
    padded = read(reader, [7, 8, 0, 0, 0], [9, 0, 0, 0, 0])
    np.testing.assert_allclose(short, padded, rtol=1e-6)
    np.testing.assert_allclose(short[1], read(reader, [9])[0], rtol=1e-6)


def test_features_are_the_lstms_output_at_the_last_word() -> None:
    reader = InstructionReader(tf.float32)
    features = read(reader, [3, 1, 2, 0])
    words = reader._embedding(tf.constant([[3], [1], [2]]))
    _, last = reader._lstm(words, tf.zeros([3, 1], tf.bool), reader._lstm.initial_state(1))
    np.testing.assert_allclose(features, last.hidden, rtol=1e-6)


def test_every_word_counts_and_so_does_their_order() -> None:
    reader = InstructionReader(tf.float32)
    rows = [[1, 2, 3], [4, 2, 3], [1, 4, 3], [1, 2, 4], [2, 1, 3], [1, 2, 0]]
    features = read(reader, *rows)
    assert features.shape == (6, 64)
    for i in range(6):
        for j in range(i):
            assert np.abs(features[i] - features[j]).max() > 1e-3, (rows[i], rows[j])


def test_no_instruction_is_zeros() -> None:
    reader = InstructionReader(tf.float32)
    features = read(reader, [0, 0], [1, 0])
    assert not features[0].any()
    assert features[1].all()
