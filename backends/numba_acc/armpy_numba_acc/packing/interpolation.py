"""Tables of functions of 16-bit elements, between whose samples kernels interpolate.

References
----------
TFLite ``kernels/internal/common.h`` (``LUTPopulate``, ``LUTLookup``), ``activations.cc``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Int16Array = npt.NDArray[np.int16]
Floats = npt.NDArray[np.floating[Any]]

_STEPS = 512
_LOWEST, _HIGHEST = -32768, 32767

SOFTMAX_STEP = 10.0 / 65535
"""Of the argument of the exponential function in softmax, which reaches over 10."""


def interpolation_table(
    function: Callable[[Floats], Floats],
    source: tuple[float, int],
    target: tuple[float, int],
    dtype: type[np.floating[Any]] = np.float32,
) -> Int16Array:
    """Samples of a function.

    Parameters
    ----------
    function : callable
        Of arrays of `dtype`.
    source, target : (float, int)
        Scale and zero point of the argument and of the result, both of 16 bits.
    dtype : type
        What the samples are computed in.

    Returns
    -------
    ndarray, int16, shape (513,)
        Each sample is moved by half the error that interpolation makes in the middle of its
        step, but the last one.
    """
    scale, half = dtype(source[0]), dtype(2)
    first, last = (scale * dtype(stored - source[1]) for stored in (_LOWEST, _HIGHEST))
    step = (last - first) / dtype(_STEPS)
    ends = (dtype(target[0]) * dtype(stored - target[1]) for stored in (_HIGHEST, _LOWEST))
    per_real = dtype(65536) / (next(ends) - next(ends))
    starts = first + np.arange(_STEPS + 1, dtype=dtype) * step
    # What grows beyond all floats is clamped like the rest.
    far = dtype(2.0**100)

    def stored_at(arguments: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(function(arguments) * per_real, -far, far)

    exact = stored_at(starts)
    middles = _rounded(stored_at(starts[:-1] + step / half))
    end = _rounded(stored_at(np.array([last])))
    samples = _rounded(exact[:-1])
    between = _rounded((exact[1:] + samples) / half)
    samples = samples - _rounded((between - middles) / half)
    clamped = np.clip(np.nan_to_num(np.append(samples, end)), _LOWEST, _HIGHEST)
    table: Int16Array = clamped.astype(np.int16)
    return table


@cache
def softmax_tables() -> tuple[Int16Array, Int16Array]:
    """Samples of ``exp(x)`` for x from -10 to 0, and of ``1 / (1 + x)`` for x from 0 to 1."""
    target = (2.0 / 65535, 0)
    exponentials = interpolation_table(np.exp, (SOFTMAX_STEP, _HIGHEST), target, np.float64)
    inverse = interpolation_table(lambda x: 1 / (1 + x), (1.0 / 65535, _LOWEST), target, np.float64)
    return exponentials, inverse


def _rounded(values: Floats) -> Floats:
    """Integers next to floats, halves away from zero."""
    below_half = np.nextafter(values.dtype.type(0.5), values.dtype.type(0))
    result: Floats = np.trunc(values + np.copysign(below_half, values))
    return result
