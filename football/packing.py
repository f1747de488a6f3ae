"""Minimaps as bits: the engine's hold 0 or 255 in each byte, of which one bit is enough."""

from __future__ import annotations

import numpy as np

BITS = 16


def pack(minimap: np.ndarray) -> np.ndarray:
    """Packs channels: uint8 [..., 16] of 0 and 255 to uint16 [..., 1], channel 0 in the lowest bit.

    The learner's end is football.networks.unpack.
    """
    packed = np.packbits(minimap.astype(bool), axis=-1, bitorder="little")
    return packed.view("<u2").astype(np.uint16)
