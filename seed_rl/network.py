"""What the runtime asks of a network."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from seed_rl.trajectories import TimeStep, time_step_spec, zeros_like_spec
from seed_rl.types import EnvironmentSpec


class Network(tf.Module, abc.ABC):
    """A recurrent network over time steps; one without memory has the state ()."""

    @abc.abstractmethod
    def initial_state(self, batch_size: int) -> Any:
        """The state [B, ...] before an episode. It must be all zeros."""

    @abc.abstractmethod
    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: Any
    ) -> tuple[Any, Any]:
        """Runs the network over T time steps.

        Args:
          time_step: [T, B, ...]. At FIRST the state is reset before it is used.
          previous_action: int32 [T, B].
          state: [B, ...].

        Returns:
          The outputs [T, B, ...], which only the algorithm looks into, and the state after the
          last step.
        """


def build(network: Network, spec: EnvironmentSpec) -> Network:
    """Creates the network's variables by running it on zeros; returns it."""
    time_step = zeros_like_spec(time_step_spec(spec, outer_dims=(1, 1)))
    network(time_step, tf.zeros([1, 1], tf.int32), network.initial_state(1))
    return network


def copy_weights(source: Network, target: Network) -> None:
    """Gives `target` the weights of `source`, a network of the same make."""
    for new, old in zip(source.variables, target.variables, strict=True):
        old.assign(new)


def run_one_step(
    network: Network, time_step: TimeStep, previous_action: tf.Tensor, state: Any
) -> tuple[Any, Any]:
    """Runs the network over one time step, given without time dimension, as acting does.

    Args:
      network: what to run.
      time_step: [B, ...].
      previous_action: int32 [B].
      state: [B, ...].

    Returns:
      The outputs [B, ...] and the next state [B, ...].
    """
    time_step = tf.nest.map_structure(lambda x: x[tf.newaxis], time_step)
    outputs, state = network(time_step, previous_action[tf.newaxis], state)
    return tf.nest.map_structure(lambda x: x[0], outputs), state
