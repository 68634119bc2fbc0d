"""Memory that begins at a cache line."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from armpy.ops.operation import Array
from armpy_numba_acc.lowering.memory import ALIGNMENT_BYTES

_Integer = ctypes.c_ssize_t


def aligned(size_bytes: int, *, zeroed: bool = True) -> Array:
    """Memory that begins at a cache line.

    Parameters
    ----------
    size_bytes : int
    zeroed : bool
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
    """Where an array's elements are."""
    return int(array.ctypes.data)


def _address_in_array(array: Array) -> int:
    """The same as `address_of`, read from the array object."""
    return _Integer.from_address(id(array) + object.__basicsize__).value


def _finds_addresses() -> bool:
    """Whether arrays begin with the address of their elements, as NumPy's C interface says."""
    if sys.implementation.name != "cpython":
        return False
    example = np.arange(6, dtype=np.int16)[2:]
    return _address_in_array(example) == address_of(example)


quick_address_of = _address_in_array if _finds_addresses() else address_of
"""The same as `address_of` in a fraction of the time, which is to be nothing for every call."""


def is_aligned(array: Array) -> bool:
    """Whether an array begins at a cache line."""
    return address_of(array) % ALIGNMENT_BYTES == 0
