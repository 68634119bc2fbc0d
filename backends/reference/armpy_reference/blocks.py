"""Elementwise work in pieces that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # Any: of the data type of a TensorInfo

_BLOCK_ELEMENTS = 1 << 15


def in_blocks(kernel: Callable[..., None], inputs: Sequence[Array], out: Array) -> None:
    """Run an elementwise kernel block by block, or at once where that is not possible.

    Parameters
    ----------
    kernel : callable
        Function of the inputs and the output, in this order; may be given parts of them. Arrays
        without axes get one, as NumPy's arithmetic would return read-only scalars.
    inputs : sequence of ndarray
        If their shapes are not that of `out`, the kernel runs once with broadcasting.
    out : ndarray
        Written by the kernel.
    """
    arrays = [*inputs, out]
    if not all(array.ndim for array in arrays):
        arrays = [np.atleast_1d(array) for array in arrays]
    is_small = out.size <= _BLOCK_ELEMENTS
    if is_small or any(a.shape != out.shape or not a.flags.c_contiguous for a in arrays):
        kernel(*arrays)
        return
    flat = [array.reshape(-1) for array in arrays]
    for first in range(0, out.size, _BLOCK_ELEMENTS):
        kernel(*(array[first : first + _BLOCK_ELEMENTS] for array in flat))
