"""Functions of real numbers as functions of stored 8-bit and 16-bit integers.

References
----------
TFLite ``kernels/internal/common.h`` (``LUTPopulate``, ``LUTLookup``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.elementary import ROUNDED
from armpy.core.numerics.quantization import QuantizationParameters
from armpy.core.numerics.rounding import Int64Array, Integers, round_half_away

__all__ = [
    "RealFunction",
    "StoredFunction",
    "by_interpolation",
    "by_table",
    "interpolate",
    "interpolation_table",
    "total_functions",
]

Floats: TypeAlias = npt.NDArray[Any]  # Any: of float32 or float64; a ufunc's type is not narrower
RealFunction: TypeAlias = Callable[[Floats], Floats]
"""Computes floats from floats of the same type, element by element."""
Stored: TypeAlias = npt.NDArray[Any]  # Any: integers of any type
StoredFunction: TypeAlias = Callable[[Stored], Int64Array]
"""Computes stored integers, in a new array, from stored integers, element by element."""

_STEPS = 512


def total_functions(target: QuantizationParameters) -> dict[str, RealFunction]:
    """Unary functions of float32 for tables, by NNAPI's names, made total and correctly rounded.

    Undefined logarithms are the lowest real number of the output, undefined reciprocal roots
    the highest.

    Reference: TFLite ``elementwise.cc`` (``LogPrepare``, ``RsqrtPrepare``), ``exp.cc``.
    """
    lowest, highest = target.real_range
    return {
        "EXP": ROUNDED.exp,
        "LOG": lambda x: np.where(x > 0, ROUNDED.log(x), lowest),
        "RSQRT": lambda x: np.where(x > 0, 1 / np.sqrt(x), highest),
    }


def by_table(
    function: RealFunction, source: QuantizationParameters, target: QuantizationParameters
) -> StoredFunction:
    """Entries of the lookup table of a function of 8-bit integers.

    float32 throughout: multiplied by the inverse of the output's scale, rounded half away from
    zero, saturated; NaN becomes real 0. Elementary functions within `function` should be
    rounded correctly, as those of `armpy.core.numerics.elementary.ROUNDED` are, where tables
    are compared bit by bit.

    Reference: TFLite ``LUTPopulate`` for 8 bits.
    """

    def compute(stored: Stored) -> Int64Array:
        with np.errstate(all="ignore"):
            real = source.scale * source.centred(stored).astype(np.float32)
            steps = function(real) * (np.float32(1) / target.scale)
            rounded = np.nan_to_num(round_half_away(steps)) + np.float32(target.zero_point)
        clamped: Floats = np.clip(rounded, target.lowest, target.highest)
        return clamped.astype(np.int64)

    return compute


def by_interpolation(
    function: RealFunction, source: QuantizationParameters, target: QuantizationParameters
) -> StoredFunction:
    """Function of int16 by interpolation between 513 samples of a function of float32.

    Reference: TFLite ``LUTPopulate`` and ``LUTLookup`` for 16 bits.
    """
    table = interpolation_table(
        function,
        (float(source.scale), source.zero_point),
        (float(target.scale), target.zero_point),
    )

    def compute(stored: Stored) -> Int64Array:
        return interpolate(table, stored)

    return compute


def interpolation_table(
    function: RealFunction,
    source: tuple[float, int],
    target: tuple[float, int],
    dtype: type[np.floating[Any]] = np.float32,
) -> npt.NDArray[np.int16]:
    """Lookup table of 16 bits: samples of a function for `interpolate`.

    `source` and `target` are (scale, zero point) of the 16-bit argument and result; samples are
    computed in `dtype`. The result has shape (513,): each sample but the last is moved by half
    the error that interpolation makes in the middle of its step.

    Reference: TFLite ``LUTPopulateInt16``.
    """
    lowest, highest = -32768, 32767
    scale, zero_point = dtype(source[0]), source[1]
    first, last = scale * dtype(lowest - zero_point), scale * dtype(highest - zero_point)
    step = (last - first) / dtype(_STEPS)
    out_scale, out_zero_point = dtype(target[0]), target[1]
    reach = out_scale * dtype(highest - out_zero_point) - out_scale * dtype(lowest - out_zero_point)
    per_real = dtype(65536) / reach
    starts = first + np.arange(_STEPS + 1, dtype=dtype) * step
    # A function that grows beyond all floats is clamped like any other: differences of infinities
    # would be no numbers.
    far = dtype(2.0**100)

    def stored(arguments: Floats) -> Floats:
        with np.errstate(all="ignore"):
            clamped: Floats = np.clip(function(arguments) * per_real, -far, far)
        return clamped

    exact = stored(starts)
    middles = round_half_away(stored(starts[:-1] + step / dtype(2)))
    end = round_half_away(stored(np.array([last])))
    samples = round_half_away(exact[:-1])
    interpolated = round_half_away((exact[1:] + samples) / dtype(2))
    samples -= round_half_away((interpolated - middles) / dtype(2))
    clamped = np.clip(np.nan_to_num(np.append(samples, end)), lowest, highest)
    table: npt.NDArray[np.int16] = clamped.astype(np.int16)
    return table


def interpolate(table: npt.NDArray[np.int16], stored: Integers) -> Int64Array:
    """Linear interpolation between the 513 samples of a 16-bit table, rounded half up.

    Arguments and results have int16 range.

    Reference: TFLite ``LUTLookup(int16_t, ...)``.
    """
    arguments = np.asarray(stored, np.int64)
    index = (arguments >> 7) + 256
    samples = table.astype(np.int64)
    slopes = np.diff(table).astype(np.int64)  # wraps in 16 bits, as the reference's does
    offset = arguments & 127
    result: Int64Array = samples[index] + ((slopes[index] * offset + 64) >> 7)
    return result
