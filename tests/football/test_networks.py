import numpy as np
import tensorflow as tf

from football.env import Football, FootballSettings, spec
from football.networks import actor_critic, unpack
from football.packing import BITS, pack
from seed_rl.trajectories import TimeStep

SETTINGS = FootballSettings(game="academy_3_vs_1_with_keeper")


def test_each_channel_has_its_bit() -> None:
    minimap = 255 * np.eye(BITS, dtype=np.uint8)  # 16 pixels, each in one channel
    packed = pack(minimap)
    assert packed.dtype == np.uint16
    assert packed[:, 0].tolist() == [2**channel for channel in range(BITS)]
    np.testing.assert_array_equal(unpack(tf.constant(packed)).numpy(), minimap)


def test_nothing_of_a_real_observation_is_lost() -> None:
    env = Football(SETTINGS)
    minimaps = [env.env.reset(seed=3)[0]]
    minimaps += [env.env.step(action)[0] for action in (5, 5, 12, 3, 0)]
    env.close()
    for minimap in minimaps:
        assert set(np.unique(minimap)) == {0, 255}
        unpacked = unpack(tf.constant(pack(minimap)))
        assert unpacked.dtype == tf.uint8
        np.testing.assert_array_equal(unpacked.numpy(), minimap)


def test_network_of_the_paper() -> None:
    network = actor_critic(spec(SETTINGS), tf.float32)
    kernels = [variable.shape for variable in network.variables if len(variable.shape) == 4]
    assert kernels[0] == (3, 3, 16, 16)  # from 16 channels of minimaps
    # Four sections, each with an entry and two blocks of two.
    assert [shape[-1] for shape in kernels] == [16] * 5 + [32] * 15
    step = TimeStep(
        tf.zeros([2, 3], tf.int32),
        tf.zeros([2, 3]),
        tf.ones([2, 3]),
        tf.zeros([2, 3, 72, 96, 1], tf.uint16),
    )
    output, _ = network(step, tf.zeros([2, 3], tf.int32), network.initial_state(3))
    assert output.policy_logits.shape == (2, 3, 19)
    assert output.value.shape == (2, 3)
