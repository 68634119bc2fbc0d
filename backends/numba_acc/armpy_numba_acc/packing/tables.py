"""Lookup tables of functions of 8-bit elements, and of 16-bit ones.

Notes
-----
Tables are indexed by elements' bits. 8-bit elements are unsigned in regions, and so are entries.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.ops import Activation, UnaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.packing.quantized import parameters_of, scale_of

Int16Array = npt.NDArray[np.int16]


def of_concatenation(source: TensorInfo, target: TensorInfo) -> Array:
    """Bytes in another quantisation, rounded in float32."""
    return _of_bytes(numerics.concatenated(parameters_of(source), parameters_of(target)))


def of_choice(source: TensorInfo, target: TensorInfo, bounds: tuple[int, int]) -> Array:
    """Bytes or words in another quantisation, clamped, as MINIMUM and MAXIMUM choose of them.

    Parameters
    ----------
    bounds
        Lowest and highest element of the target, as kept.
    """
    function = numerics.converted(
        (source.scale, source.zero_point),
        (target.scale, target.zero_point),
        target.data_type.integer_range,
    )
    lowest, highest = source.data_type.integer_range
    stored = np.arange(lowest, highest + 1)
    if source.quantization != target.quantization:
        stored = function(stored)
    if source.data_type.size_bytes == 1:
        return np.clip(stored - lowest, *bounds).astype(np.uint8)
    # Words stand in the order of their bits.
    return np.roll(np.clip(stored, *bounds), len(stored) // 2).astype(np.int16)


def of_pairs(function: numerics.PairFunction) -> Array:
    """Lookup table (65536,) of a function of two bytes, the first one in the upper half."""
    first, second = np.divmod(np.arange(1 << 16), 256)
    return function(first, second).astype(np.uint8)


def of_quotients(
    lhs: TensorInfo, rhs: TensorInfo, target: TensorInfo, bounds: tuple[int, int]
) -> Array:
    """Bytes of a division of bytes, by both of them."""
    operands = parameters_of(lhs), parameters_of(rhs)
    return of_pairs(numerics.quotients(operands, parameters_of(target), bounds))


def of_powers(
    lhs: TensorInfo, rhs: TensorInfo, target: TensorInfo, bounds: tuple[int, int]
) -> Array:
    """Bytes of a power of bytes, by both of them."""
    operands = parameters_of(lhs), parameters_of(rhs)
    return of_pairs(numerics.through_reals(operands, parameters_of(target), bounds, np.power))


def for_comparison(*sources: TensorInfo) -> list[Array]:
    """int32 that bytes of several quantisations can be compared as.

    Reals with 8 more bits, which may need 64; so each is replaced by how many are below it.
    """
    reals = [
        numerics.shifted_rescaling(float(scale_of(source)), parameters_of(source), 8)(
            np.arange(256)
        )
        for source in sources
    ]
    order = np.unique(np.concatenate(reals))
    return [np.searchsorted(order, real).astype(np.int32) for real in reals]


def of_softmax_of_pairs(exponentials: numerics.softmax.Exponentials) -> npt.NDArray[np.uint16]:
    """Softmax of two bytes, which are the halves of an index, as those of an entry.

    Reference: TFLite reference kernel ``softmax.h``.
    """
    bits = 8
    sums = np.minimum(exponentials.summands[0] + exponentials.summands, (1 << 31) - 1)
    inverse, over_unit = numerics.logarithm.reciprocal(sums, numerics.softmax.SUM_INTEGER_BITS)
    # The larger of both first, whose difference from itself is 0.
    results = []
    for values in (exponentials.values[0], exponentials.values):
        product = numerics.fixed_point.multiply_high(values, inverse)
        numerics.rounding_shift_right(product, over_unit + 31 - bits, out=product)
        results.append(np.minimum(product, 255))
    second, first = np.divmod(np.arange(1 << 16), 256)
    larger, smaller = (result[abs(first - second)] for result in results)
    lower = np.where(first >= second, larger, smaller)
    upper = np.where(second >= first, larger, smaller)
    return np.asarray(lower | upper << 8, np.uint16)


def of_sigmoid16(source: TensorInfo) -> Int16Array:
    """Words of the logistic function with the output scale ``2**-15``."""
    return _of_words(numerics.logistic16(parameters_of(source)))


def of_tanh16(source: TensorInfo) -> Int16Array:
    """Words of the hyperbolic tangent with the output scale ``2**-15``."""
    return _of_words(numerics.tanh16(parameters_of(source)))


def of_gelu16(operation: Activation, source: TensorInfo, target: TensorInfo) -> Int16Array:
    """Words of GELU."""
    exact = numerics.elementary.ROUNDED
    function = partial(
        numerics.activations.gelu, approximate=operation.approximate, functions=exact
    )
    return _of_words(
        numerics.by_interpolation(function, parameters_of(source), parameters_of(target))
    )


def of_unary16(operation: UnaryOperation, source: TensorInfo, target: TensorInfo) -> Int16Array:
    """Words of ABS, EXP, LOG, RSQRT and SQRT. Others have no arithmetic."""
    parameters = parameters_of(source), parameters_of(target)
    if operation is UnaryOperation.ABS:
        return _of_words(numerics.absolute(*parameters))
    if operation is UnaryOperation.SQRT:
        return _of_words(numerics.square_root(*parameters))
    return _of_words(
        numerics.by_interpolation(
            numerics.total_functions(parameters[1])[operation.name], *parameters
        )
    )


def _of_bytes(function: numerics.StoredFunction) -> Array:
    """Lookup table (256,) of a function."""
    return function(np.arange(256)).astype(np.uint8)


def _of_words(function: numerics.StoredFunction) -> Int16Array:
    """Lookup table (65536,) of a function, by the words' bits."""
    return function(np.arange(1 << 16, dtype=np.uint16).view(np.int16)).astype(np.int16)
