"""Settings of the DeepMind Lab networks (no TensorFlow)."""

from __future__ import annotations

import dataclasses

from seed_rl.settings import setting


@dataclasses.dataclass(frozen=True)
class NetworkSettings:
    torso: str = setting(
        "deep",
        "'shallow' (IMPALA's 2 convolutions) or 'deep' (IMPALA's ResNet).",
        choices=("shallow", "deep"),
    )
    lstm_size: int = setting(256, "Units of the LSTM.", minimum=1)
