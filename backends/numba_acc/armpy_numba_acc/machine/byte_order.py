"""Order of bytes in 32-bit lanes; without Numba, as packing needs it, too."""

from __future__ import annotations


def lane_order(size: int) -> list[int]:
    """Which byte each lane holds, for four vectors made of `size` bytes, one after the other.

    Vector `k` holds of every 16 bytes those from ``4 k`` on.
    """
    return [
        16 * block + 4 * part + lane
        for part in range(4)
        for block in range(size // 16)
        for lane in range(4)
    ]
