"""The learner's own settings (no TensorFlow)."""

from __future__ import annotations

import dataclasses
import math
import re

from seed_rl.errors import UserError
from seed_rl.settings import setting

# What episode_log.py tells; tasks have names of their own.
_EPISODE_SCALAR = re.compile(
    r"(training|evaluation)/"
    r"((mean_)?(return|score)(/.+)?|length(/.+)?|human_normalized_(median|mean)(_capped)?)"
)


@dataclasses.dataclass(frozen=True)
class LearnerSettings:
    logdir: str = setting(
        "",
        "Folder, or gs://bucket/folder, of checkpoints, summaries and policy; training resumes "
        "from what is there.",
    )
    num_envs: int = setting(32, "Environments of all actors together.", minimum=1)
    num_eval_envs: int = setting(
        0, "The last so many of them evaluate: their episodes are never trained on.", minimum=0
    )
    seed: int = setting(
        0,
        "Seeds environments, initial weights and action sampling. What an environment does with "
        "given actions and where the weights start repeats exactly; which rows share an inference "
        "batch, and so which random numbers meet which row, depends on the actors' timing.",
        minimum=0,
        maximum=2**30,
    )
    total_environment_frames: int = setting(
        1_000_000_000,
        "Training ends after so many engine frames (actions times action repeat).",
        minimum=1,
    )
    batch_size: int = setting(
        32, "Unrolls in a training batch, over all training devices.", minimum=1
    )
    unroll_queue_max_size: int = setting(
        0,
        "Completed unrolls that may wait, then actors wait, too; at least --batch_size.",
        minimum=0,
    )
    inference_batch_size: int = setting(
        -1,
        "Largest inference batch, in environments (-1: half of --num_envs, shared by the inference "
        "devices, so that acting and inference overlap).",
        minimum=-1,
    )
    inference_timeout_ms: int = setting(
        20, "An inference batch goes out at the latest after this, full or not.", minimum=1
    )
    save_checkpoint_secs: int = setting(1800, "Seconds between checkpoints.", minimum=1)
    init_checkpoint: str = setting(
        "", "Checkpoint to start from, counters included, when --logdir has none."
    )
    log_batch_frequency: int = setting(
        100, "Training steps between summaries of the losses.", minimum=1
    )
    log_episode_frequency: int = setting(
        1, "Every so many episodes of a kind, return and length go to the summaries.", minimum=1
    )

    tuning_metric: str = setting(
        "",
        "Scalar that is reported to Vertex AI's hyper-parameter tuning, such as "
        "training/mean_return; empty: none.",
    )

    def __post_init__(self) -> None:
        if self.num_eval_envs >= self.num_envs:
            raise UserError(
                f"--num_eval_envs: expected less than the {self.num_envs} of --num_envs, "
                f"got {self.num_eval_envs}."
            )
        if self.tuning_metric and not _EPISODE_SCALAR.fullmatch(self.tuning_metric):
            raise UserError(
                "--tuning_metric: expected a scalar of episodes as TensorBoard has them, such as "
                f"training/mean_return or evaluation/mean_score, got '{self.tuning_metric}'."
            )
        if self.tuning_metric.startswith("evaluation/") and not self.num_eval_envs:
            raise UserError(
                f"--num_eval_envs: expected some for --tuning_metric={self.tuning_metric}, got 0."
            )

    @property
    def num_training_envs(self) -> int:
        return self.num_envs - self.num_eval_envs

    def inference_rows(self, env_batch_size: int, num_devices: int) -> int:
        """Environments in the largest inference batch of each of so many inference devices.

        Args:
          env_batch_size: environments that come in one call.
          num_devices: that share the environments.

        Raises:
          UserError: a call would not fit.
        """
        if self.inference_batch_size == -1:
            share = self.num_envs / (2 * num_devices)
            return math.ceil(share / env_batch_size) * env_batch_size
        if self.inference_batch_size < env_batch_size:
            raise UserError(
                f"--inference_batch_size: expected at least the {env_batch_size} of "
                "--env_batch_size, which come in one call, or -1, "
                f"got {self.inference_batch_size}."
            )
        return self.inference_batch_size

    @property
    def unroll_queue_capacity(self) -> int:
        """Unrolls that the queue holds; a batch must fit."""
        return max(self.unroll_queue_max_size, self.batch_size)


@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    learning_rate: float = setting(1e-4, "Adam's learning rate.", minimum=0.0)
    learning_rate_decay: bool = setting(
        False, "Lets the learning rate fall linearly to 0 at --total_environment_frames."
    )
    adam_beta1: float = setting(
        0.9, "Adam's decay of the first moment.", minimum=0.0, maximum=0.9999
    )
    adam_epsilon: float = setting(1e-3, "Adam's epsilon.", minimum=0.0)
    clip_norm: float = setting(0.0, "Bound on the global gradient norm (0: none).", minimum=0.0)


@dataclasses.dataclass(frozen=True)
class DeviceSettings:
    num_training_tpus: int = setting(
        1, "On a TPU host: cores that train; the others run inference.", minimum=1
    )
    num_training_gpus: int = setting(
        0,
        "With several GPUs: how many train; the others run inference (0: all but one).",
        minimum=0,
    )
    training_devices: str = setting(
        "",
        "Devices that train, such as '/gpu:0,/gpu:1' or '/cpu:0,/cpu:1' (unset: those of the "
        "machine).",
    )
    inference_devices: str = setting(
        "", "With --training_devices: devices that run inference (unset: the last that trains)."
    )
    precision: str = setting(
        "auto",
        "Of torsos and LSTMs, where the domain's networks offer it; weights, state, heads and "
        "losses are float32 in any case. 'auto': bfloat16 where the hardware multiplies it.",
        choices=("auto", "float32", "bfloat16"),
    )
    intra_op_threads: int = setting(
        0,
        "CPU threads that one TensorFlow operation of the learner may use (0: one per core). "
        "run_local.sh leaves half of the cores to the actors.",
        minimum=0,
    )
