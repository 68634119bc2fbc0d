"""Tables of the functions of integer LSTMs: sigmoid and tanh of 16-bit numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from armpy.core import numerics


@cache
def sigmoid_table() -> npt.NDArray[np.int16]:
    """Logistic function of every number with 3 integer bits, lowest first.

    Returns
    -------
    ndarray, int16, shape (65536,)
        With 15 fraction bits.
    """
    return numerics.gemmlowp.logistic(_every_number(), 3, bits=16).astype(np.int16)


@cache
def tanh_table(integer_bits: int) -> npt.NDArray[np.int16]:
    """Hyperbolic tangent of every number with some integer bits; otherwise as above."""
    return numerics.gemmlowp.tanh(_every_number(), integer_bits, bits=16).astype(np.int16)


def _every_number() -> npt.NDArray[np.int64]:
    """All of int16, lowest first."""
    return np.arange(-(1 << 15), 1 << 15)
