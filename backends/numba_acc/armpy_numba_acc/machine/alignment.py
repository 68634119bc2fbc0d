"""Memory that begins at a cache line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.ops.operation import Array


ALIGNMENT_BYTES = 64
"""Of every buffer in the arena and among the constants."""


def aligned(size_bytes: int, *, zeroed: bool = True) -> Array:
    """Memory that begins at a cache line.

    Parameters
    ----------
    zeroed
        Whether it must hold zeros.

    Returns
    -------
    ndarray, uint8, shape (size_bytes,)
    """
    make = np.zeros if zeroed else np.empty
    memory: Array = make(size_bytes + ALIGNMENT_BYTES, np.uint8)
    skip = -address_of(memory) % ALIGNMENT_BYTES
    return memory[skip : skip + size_bytes]


def address_of(array: Array) -> int:
    """Return the address of an array's elements."""
    return int(array.ctypes.data)


def is_aligned(array: Array) -> bool:
    """Return whether an array begins at a cache line."""
    return address_of(array) % ALIGNMENT_BYTES == 0
