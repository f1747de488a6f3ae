"""One update of the network from a batch of unrolls, on all training devices."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from seed_rl.algorithm import Algorithm
from seed_rl.errors import UserError
from seed_rl.learner_settings import OptimizerSettings
from seed_rl.packing import pack, unpack
from seed_rl.trajectories import Unroll, transpose_time


class UpdateOutput(NamedTuple):
    """What an update tells.

    Attributes:
      priorities: float32 [B], or () for an algorithm without.
      metrics: scalars by name.
    """

    priorities: Any
    metrics: dict[str, tf.Tensor]


def make_optimizer(
    settings: OptimizerSettings, updates_in_all: int
) -> tf_keras.optimizers.Optimizer:
    """Adam; `updates_in_all` is when a falling learning rate reaches 0."""
    # A schedule even if it is constant: a plain rate is a variable, which checkpoints bring back.
    learning_rate = tf_keras.optimizers.schedules.PolynomialDecay(
        settings.learning_rate,
        updates_in_all,
        end_learning_rate=0.0 if settings.learning_rate_decay else settings.learning_rate,
    )
    return tf_keras.optimizers.Adam(
        learning_rate, beta_1=settings.adam_beta1, epsilon=settings.adam_epsilon
    )


class Updater(tf.Module):
    """Applies gradients of an algorithm's losses. Construct it inside the strategy's scope.

    Args:
      algorithm: gives losses and variables.
      strategy: every replica gets an equal part of the batch; losses are means over the whole
        batch.
      settings: optimizer.
      batch_size: B, a multiple of the number of replicas.
      updates_in_all: see make_optimizer.
      packed_spec: TensorSpecs of an unroll, if unrolls are to cross to the devices packed.

    Attributes:
      optimizer: for checkpoints.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        strategy: tf.distribute.Strategy,
        settings: OptimizerSettings,
        batch_size: int,
        updates_in_all: int,
        packed_spec: Unroll | None = None,
    ):
        super().__init__()
        replicas = strategy.num_replicas_in_sync
        if batch_size % replicas:
            raise UserError(
                f"--batch_size: expected a multiple of {replicas}, the training devices, "
                f"got {batch_size}."
            )
        self._algorithm = algorithm
        self._strategy = strategy
        self._packed_spec = packed_spec
        self._clip_norm = settings.clip_norm
        self._batch_size = batch_size
        self.optimizer = make_optimizer(settings, updates_in_all)
        self.optimizer.build(list(algorithm.trained_variables))

    def update(self, unrolls: Unroll, weights: Any) -> UpdateOutput:
        """One update.

        Args:
          unrolls: batch-major [B, T, ...].
          weights: float32 [B], weight of each unroll's loss.
        """
        if self._packed_spec:
            unrolls = pack(unrolls, self._packed_spec)
        return self._update(*self._shard((unrolls, weights)))

    @tf.function(autograph=False)
    def _update(self, unrolls: Unroll, weights: tf.Tensor) -> UpdateOutput:
        output = self._strategy.run(self._replica_update, args=(unrolls, weights))
        priorities = tf.nest.map_structure(
            lambda x: tf.concat(self._strategy.experimental_local_results(x), axis=0),
            output.priorities,
        )
        metrics = {
            name: self._strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
            for name, value in output.metrics.items()
        }
        return UpdateOutput(priorities, metrics)

    def _replica_update(self, unrolls: Unroll, weights: tf.Tensor) -> UpdateOutput:
        if self._packed_spec:
            unrolls = unpack(unrolls, self._packed_spec)
        variables = list(self._algorithm.trained_variables)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            output = self._algorithm.loss(transpose_time(unrolls))
            loss = tf.reduce_sum(weights * output.loss) / self._batch_size
        gradients = tape.gradient(
            loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        # Summed before they are clipped, so that the bound holds for the whole batch's gradient.
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip_norm, use_norm=norm)
        self.optimizer.apply_gradients(
            zip(gradients, variables, strict=True), skip_gradients_aggregation=True
        )
        metrics = {
            "loss/total": loss * context.num_replicas_in_sync,
            "gradient/norm": norm,
            **output.metrics,
        }
        return UpdateOutput(output.priorities, metrics)

    def _shard(self, batch: Any) -> Any:
        """Splits host tensors [B, ...] into one equal part per replica."""
        replicas = self._strategy.num_replicas_in_sync
        if replicas == 1:
            return batch
        size = self._batch_size // replicas

        def part(context: tf.distribute.ValueContext) -> Any:
            start = context.replica_id_in_sync_group * size
            return tf.nest.map_structure(lambda x: x[start : start + size], batch)

        return self._strategy.experimental_distribute_values_from_function(part)
