"""Exact sums of integer products through floating-point matrix products.

References
----------
IEEE 754: integers up to 2**24 (2**53) are exact in float32 (float64), so that sums of
products are exact in any order of summation as long as the sum of the magnitudes stays below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_reference.quantized.requantize import OutputStage

Array = npt.NDArray[Any]  # Any: stored elements of any type, sums of the type found here

_BLOCK_ELEMENTS = 1 << 18


def exact_dtype(bound: float) -> np.dtype[Any]:  # Any: one of three number types
    """Accumulation type: the fastest one in which sums are exact.

    Parameters
    ----------
    bound
        No sum of magnitudes of products is larger.
    """
    # A float holds every integer up to its mantissa's size. No partial sum exceeds the sum of
    # magnitudes, whatever order the library adds in, so none is ever rounded.
    if bound < 1 << 24:
        return np.dtype(np.float32)
    return np.dtype(np.float64 if bound < 1 << 53 else np.int64)


def block_length(elements_each: int) -> int:
    """Block size: items of a given size that stay in the cache together."""
    return max(_BLOCK_ELEMENTS // max(elements_each, 1), 1)


def product_into(rows: Array, matrix: Array, stage: OutputStage, out: Array) -> None:
    """Multiply rows by a matrix and finish the sums, block by block.

    Parameters
    ----------
    rows : ndarray, any dtype, shape (m, k)
    matrix : ndarray, the dtype to compute in, shape (k, channels)
    out : ndarray, dtype of the output, shape (m, channels)
    """
    count, depth = rows.shape
    channels = matrix.shape[1]
    block = min(block_length(depth + channels), count)
    converted = None if rows.dtype == matrix.dtype else np.empty((block, depth), matrix.dtype)
    scratch = None if out.dtype == matrix.dtype else np.empty((block, channels), matrix.dtype)
    for first in range(0, count, block or 1):
        part, target = rows[first : first + block], out[first : first + block]
        if converted is not None:
            np.copyto(converted[: len(part)], part, casting="unsafe")
            part = converted[: len(part)]
        sums = target if scratch is None else scratch[: len(part)]
        np.matmul(part, matrix, out=sums)
        stage.finish(sums, target)
