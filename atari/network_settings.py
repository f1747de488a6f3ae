"""Settings of the Atari networks (no TensorFlow)."""

from __future__ import annotations

import dataclasses

from seed_rl.settings import setting


@dataclasses.dataclass(frozen=True)
class NetworkSettings:
    torso: str = setting(
        "shallow",
        "'nature' (3 convolutions, 512 units), 'shallow' (IMPALA's 2) or 'deep' (IMPALA's ResNet).",
        choices=("nature", "shallow", "deep"),
    )
    lstm_size: int = setting(256, "Units of the LSTM.", minimum=1)
    stack_size: int = setting(4, "Frames that the network sees at once.", minimum=1, maximum=4)
