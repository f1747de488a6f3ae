"""What the one learner loop asks of an algorithm."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from seed_rl.network import Network
from seed_rl.trajectories import PolicyStep, TimeStep, Unroll


class LossOutput(NamedTuple):
    """What an algorithm computes from a batch of unrolls.

    Attributes:
      loss: float32 [B], one loss per unroll.
      priorities: float32 [B] for a replay; () for an algorithm that trains from the queue.
      metrics: scalars for the summaries, by name.
    """

    loss: tf.Tensor
    priorities: Any
    metrics: dict[str, tf.Tensor]


class Algorithm(tf.Module, abc.ABC):
    """Decides what to do with network outputs when acting, and with unrolls when training.

    The learner constructs it inside the scope of its distribution strategy. Acting is given the
    network to use, since every inference device has a copy of its own. `act`, `loss` and
    `initial_priorities` are traced without AutoGraph: branches on tensors are tf.where or tf.cond.

    Attributes:
      network: the network that is trained.
      steps_per_unroll: time steps in an unroll, all included.
      overlap: how many of them are the last ones of the environment's previous unroll.
      policy_info_spec: TensorSpecs (without batch dimension) of what `act` stores with each action.
    """

    steps_per_unroll: int
    overlap: int
    policy_info_spec: Any

    def __init__(self, create_network: Callable[[], Network]):
        super().__init__()
        self.create_network = create_network
        self.network = create_network()

    @property
    def trained_variables(self) -> Sequence[tf.Variable]:
        """The variables that the optimizer updates."""
        return self.network.trainable_variables

    @abc.abstractmethod
    def act(
        self,
        network: Network,
        time_step: TimeStep,
        previous_action: tf.Tensor,
        state: Any,
        env_ids: tf.Tensor | None = None,
    ) -> PolicyStep:
        """The behaviour policy.

        Args:
          network: the copy to run.
          time_step: [B, ...].
          previous_action: int32 [B].
          state: the network's state [B, ...].
          env_ids: int32 [B], for exploration that depends on the environment; None: without any.

        Returns:
          Actions int32 [B], the next state [B, ...] and policy infos [B, ...].
        """

    @abc.abstractmethod
    def loss(self, unrolls: Unroll) -> LossOutput:
        """Losses of time-major unrolls [T, B, ...]. Pure apart from reading variables."""

    def initial_priorities(self, unrolls: Unroll) -> tf.Tensor:
        """Priorities float32 [B] of batch-major unrolls [B, T, ...] that were never trained on."""
        raise TypeError(f"{type(self).__name__} trains from a queue, which has no priorities.")

    def after_update(self, training_step: int) -> None:
        """Called after each update, with the count of updates; for target networks."""
        del training_step
