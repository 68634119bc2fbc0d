"""Functions of stored 8-bit and 16-bit integers as tables.

References
----------
TFLite ``kernels/internal/common.h`` (``LUTPopulate``, ``LUTLookup``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.tensor import TensorInfo
from armpy_reference.quantization import round_half_away, scale_of

Array: TypeAlias = npt.NDArray[Any]  # Any: of the data type of a TensorInfo
UnaryKernel: TypeAlias = Callable[[Array, Array], None]
"""Computes stored integers (second argument, written) from stored integers."""
BinaryKernel: TypeAlias = Callable[[Array, Array, Array], None]
"""Computes stored integers (third argument, written) from two tensors that broadcast."""
RealFunction: TypeAlias = Callable[[Array], Array]
"""Computes floats from floats of the same type, element by element."""

_STEPS = 512


def table_of_kernel(kernel: UnaryKernel, source: TensorInfo, target: TensorInfo) -> Array:
    """What a kernel makes of each stored 8-bit integer.

    Returns
    -------
    ndarray, dtype of `target`, shape (256,)
        Indexed by the stored byte.
    """
    table = np.empty(256, target.data_type.dtype)
    kernel(_every_byte(source), table)
    return table


def table_of_function(function: RealFunction, source: TensorInfo, target: TensorInfo) -> Array:
    """What a function of real numbers makes of each stored 8-bit integer.

    Parameters
    ----------
    function : callable
        Of float32 arrays. Its elementary functions ought to be rounded correctly, as the
        table is compared bit by bit.
    source, target : TensorInfo

    Returns
    -------
    ndarray, dtype of `target`, shape (256,)
        Indexed by the stored byte.

    Notes
    -----
    float32 throughout: multiplied by the inverse of the output's scale, rounded half away
    from zero, saturated; NaN becomes real 0.
    """
    stored = _every_byte(source).astype(np.int32)
    real = scale_of(source) * (stored - source.zero_point).astype(np.float32)
    steps = function(real) * (np.float32(1) / scale_of(target))
    rounded = np.nan_to_num(round_half_away(steps)) + np.float32(target.zero_point)
    clamped: Array = np.clip(rounded, *target.data_type.integer_range)
    return clamped.astype(target.data_type.dtype)


def look_up(table: Array, stored: Array, out: Array) -> None:
    """Write the table's entry of each stored 8-bit integer."""
    # Every byte has an entry; the mode spares NumPy a buffer for the case of an error.
    np.take(table, stored.view(np.uint8), out=out, mode="clip")


def table_of_pairs(
    kernel: BinaryKernel, lhs: TensorInfo, rhs: TensorInfo, target: TensorInfo
) -> Array:
    """What a kernel makes of each pair of stored 8-bit integers.

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


def interpolation_table(
    function: RealFunction,
    source: tuple[float, int],
    target: tuple[float, int],
    dtype: type[np.floating[Any]] = np.float32,
) -> Array:
    """Samples of a function for `interpolate`.

    Parameters
    ----------
    function : callable
        Of arrays of `dtype`.
    source, target : tuple of float and int
        Scale and zero point of the 16-bit argument and result.
    dtype : type
        What the samples are computed in.

    Returns
    -------
    ndarray, int16, shape (513,)
        Each sample is moved by half the error that interpolation makes in the middle of its
        step, but the last one.
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

    def stored(arguments: Array) -> Array:
        clamped: Array = np.clip(function(arguments) * per_real, -far, far)
        return clamped

    exact = stored(starts)
    middles = round_half_away(stored(starts[:-1] + step / dtype(2)))
    end = round_half_away(stored(np.array([last])))
    samples = round_half_away(exact[:-1])
    interpolated = round_half_away((exact[1:] + samples) / dtype(2))
    samples -= round_half_away((interpolated - middles) / dtype(2))
    table: Array = np.clip(np.nan_to_num(np.append(samples, end)), lowest, highest)
    return table.astype(np.int16)


def interpolate(table: Array, stored: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Values at 16-bit arguments between the table's samples, rounded half up.

    Parameters
    ----------
    table : ndarray, int16, shape (513,)
    stored : ndarray, any integer dtype, shape (...)
        Of int16 range.

    Returns
    -------
    ndarray, int64, shape of `stored`
        Of int16 range.
    """
    arguments: npt.NDArray[np.int64] = stored.astype(np.int64)
    index = (arguments >> 7) + 256
    samples = table.astype(np.int64)
    slopes = np.diff(table).astype(np.int64)  # wraps in 16 bits, as the reference's does
    offset = arguments & 127
    result: npt.NDArray[np.int64] = samples[index] + ((slopes[index] * offset + 64) >> 7)
    return result


def _every_byte(info: TensorInfo) -> Array:
    """All integers of an 8-bit type in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(info.data_type.dtype)
