"""Lookup tables for stored 8-bit integers, and for pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.lookup_table import StoredFunction
from armpy.tensor import TensorInfo

Array: TypeAlias = npt.NDArray[Any]  # Any: of the data type of a TensorInfo
UnaryKernel: TypeAlias = Callable[[Array, Array], None]
"""Computes stored integers (second argument, written) from stored integers."""
BinaryKernel: TypeAlias = Callable[[Array, Array, Array], None]
"""Computes stored integers (third argument, written) from two tensors that broadcast."""


def table_of(function: StoredFunction, source: TensorInfo, target: TensorInfo) -> Array:
    """Lookup table of a function of stored 8-bit integers.

    Returns
    -------
    ndarray, dtype of `target`, shape (256,)
        Indexed by the stored byte.
    """
    return function(_every_byte(source)).astype(target.data_type.dtype)


def look_up(table: Array, stored: Array, out: Array) -> None:
    """Write the table's entry of each stored 8-bit integer."""
    # Every byte has an entry; the mode spares NumPy a buffer for the case of an error.
    np.take(table, stored.view(np.uint8), out=out, mode="clip")


def table_of_pairs(
    kernel: BinaryKernel, lhs: TensorInfo, rhs: TensorInfo, target: TensorInfo
) -> Array:
    """Lookup table of a kernel of pairs of stored 8-bit integers.

    Returns
    -------
    ndarray, dtype of `target`, shape (65536,)
        Indexed by ``256 * left byte + right byte``.
    """
    table = np.empty((256, 256), target.data_type.dtype)
    kernel(_every_byte(lhs)[:, np.newaxis], _every_byte(rhs), table)
    return table.reshape(-1)


def look_up_pairs(table: Array, lhs: Array, rhs: Array, out: Array) -> None:
    """Write the table's entry of each pair of stored 8-bit integers; inputs broadcast."""
    pairs = np.left_shift(lhs.view(np.uint8), 8, dtype=np.uint16)
    np.take(table, pairs | rhs.view(np.uint8), out=out, mode="clip")


def _every_byte(info: TensorInfo) -> Array:
    """All integers of an 8-bit type in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(info.data_type.dtype)
