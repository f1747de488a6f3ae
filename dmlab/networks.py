"""Networks for DeepMind Lab: IMPALA's (arXiv 1802.01561, figure 3), with the head of an algorithm.

A torso for the image, an LSTM over the words of the instruction if there is one, an LSTM over time.
`dtype` is that of convolutions and matrix products, float32 or bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf
import tf_keras

from agents.blocks import torsos
from agents.blocks.lstm import ResettingLSTM
from agents.blocks.recurrent import RecurrentNetwork
from agents.r2d2.head import DuelingHead
from agents.vtrace.head import ActorCriticHead
from dmlab.instructions import NUM_BUCKETS, PADDING
from dmlab.network_settings import NetworkSettings
from seed_rl.network import Network, build
from seed_rl.types import ArraySpec, EnvironmentSpec

_TORSOS = {"shallow": torsos.shallow, "deep": torsos.deep}


def actor_critic(spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType) -> Network:
    """For V-trace."""
    return _recurrent(ActorCriticHead(spec.num_actions), spec, settings, dtype)


def dueling(spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType) -> Network:
    """For R2D2."""
    return _recurrent(DuelingHead(spec.num_actions, hidden=512), spec, settings, dtype)


def _recurrent(
    head: tf.Module, spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType
) -> Network:
    torso = _TORSOS[settings.torso](torsos.dtype_policy(dtype))
    has_instruction = not isinstance(spec.observation, ArraySpec)
    network = RecurrentNetwork(
        torso=ReadingTorso(torso, InstructionReader(dtype)) if has_instruction else torso,
        head=head,
        num_actions=spec.num_actions,
        core=ResettingLSTM(settings.lstm_size, dtype),
    )
    return build(network, spec)


class InstructionReader(tf.Module):
    """From word ids int32 [N, W] to features float32 [N, units]: embedding, then an LSTM.

    The features are the LSTM's output at the last word, zeros where there is none. Sizes: Espeholt
    et al. (arXiv 1802.01561), section 5.3 and figure 3.

    Args:
      dtype: of the LSTM's matrix products.
      embedding_size: of a word.
      units: of the LSTM.
    """

    def __init__(self, dtype: tf.DType, embedding_size: int = 20, units: int = 64):
        super().__init__()
        # The padding's row is never seen: outputs are taken before it.
        self._embedding = tf_keras.layers.Embedding(NUM_BUCKETS + 1, embedding_size)
        self._lstm = ResettingLSTM(units, dtype)

    def __call__(self, word_ids: tf.Tensor) -> tf.Tensor:
        is_word = tf.transpose(word_ids != PADDING)
        outputs, _ = self._lstm(
            tf.transpose(self._embedding(word_ids), [1, 0, 2]),
            tf.zeros_like(is_word),
            self._lstm.initial_state(tf.shape(word_ids)[0]),
        )
        is_later_word = tf.concat([is_word[1:], tf.zeros_like(is_word[:1])], axis=0)
        is_last_word = tf.cast(is_word & ~is_later_word, tf.float32)
        return tf.reduce_sum(is_last_word[..., tf.newaxis] * outputs, axis=0)


class ReadingTorso(tf.Module):
    """Features of the image and of the instruction side by side.

    Args:
      torso: from images uint8 [N, H, W, 3] to features float32 [N, F].
      reader: from word ids int32 [N, W] to features float32 [N, G].
    """

    def __init__(
        self,
        torso: Callable[[tf.Tensor], tf.Tensor],
        reader: Callable[[tf.Tensor], tf.Tensor],
    ):
        super().__init__()
        self._torso = torso
        self._reader = reader

    def __call__(self, observation: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """float32 [N, F + G] from {"image", "instruction"}."""
        image = self._torso(observation["image"])
        return tf.concat([image, self._reader(observation["instruction"])], axis=-1)
