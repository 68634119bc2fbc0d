"""Softmax and its logarithm along the last axis, exactly as TFLite's reference kernels do it.

References
----------
TFLite reference kernels ``softmax.h``, ``log_softmax.h``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier, multiply_high
from armpy.core.numerics.logarithm import logarithm, reciprocal
from armpy.core.numerics.lookup_table import interpolate
from armpy.core.numerics.rounding import leading_zeros, rounding_shift_right
from armpy.core.numerics.softmax import (
    ARGUMENT_INTEGER_BITS,
    ARGUMENT_STEP,
    SUM_INTEGER_BITS,
    Exponentials,
    softmax16_tables,
)
from armpy.tensor import TensorInfo
from armpy_reference.quantization import scale_of
from armpy_reference.quantized.lookup_table import Array, UnaryKernel

_LOG_OUTPUT_INTEGER_BITS = 4
_LOG_SHIFT = 31 - ARGUMENT_INTEGER_BITS - _LOG_OUTPUT_INTEGER_BITS
_LOWEST_INT32 = -(1 << 31)


def _differences(stored: Array) -> npt.NDArray[np.uint8]:
    """Differences of elements from the largest of their row."""
    rows = stored.astype(np.int16)
    differences: npt.NDArray[np.int16] = rows.max(axis=-1, keepdims=True) - rows
    return differences.astype(np.uint8)


def softmax8(source: TensorInfo, target: TensorInfo, beta: float) -> UnaryKernel:
    """Softmax of 8-bit rows to an 8-bit or 16-bit output.

    The output's lowest integer stands for 0 and the step is ``2**-bits`` of its type.
    """
    exponentials = Exponentials(source.scale, beta)
    lowest, highest = target.data_type.integer_range
    bits = 8 * target.data_type.size_bytes

    def compute(stored: Array, out: Array) -> None:
        differences = _differences(stored)
        sums = exponentials.sums_of(differences)
        inverse, bits_over_unit = reciprocal(sums, SUM_INTEGER_BITS)
        result = multiply_high(exponentials.values[differences], inverse)
        rounding_shift_right(result, bits_over_unit + 31 - bits, out=result)
        out[...] = np.minimum(result + lowest, highest)

    return compute


def log_softmax8(source: TensorInfo, target: TensorInfo, beta: float) -> UnaryKernel:
    """Log-softmax of 8-bit rows; the output's highest integer stands for 0, its step is 1/16."""
    exponentials = Exponentials(source.scale, beta)
    lowest, highest = target.data_type.integer_range
    # What turns an argument of exp back into a difference of stored integers.
    inverse = Multiplier.from_real(exponentials.per_argument)

    def compute(stored: Array, out: Array) -> None:
        differences = _differences(stored)
        sums = exponentials.sums_of(differences)
        log_sums = logarithm(sums, SUM_INTEGER_BITS)
        least = np.maximum(-exponentials.radius - 1, inverse.apply(log_sums + _LOWEST_INT32))
        result = exponentials.arguments[differences] - log_sums
        rounding_shift_right(result, _LOG_SHIFT, out=result)
        result = np.clip(result + highest, lowest, highest)
        out[...] = np.where(-differences.astype(np.int64) > least, result, lowest)

    return compute


def softmax16(source: TensorInfo, beta: float) -> UnaryKernel:
    """Softmax of 16-bit rows with the output scale 2**-15.

    Interpolates tables of ``exp(x)`` for x in [-10, 0] and of ``1 / (1 + x)`` for x in
    [0, 1]; the sum has 15 fraction bits.
    """
    exp_table, reciprocal_table = softmax16_tables()
    factor = float(scale_of(source) * np.float32(beta))
    multiplier = Multiplier.from_real(factor / ARGUMENT_STEP)

    def compute(stored: Array, out: Array) -> None:
        rows = stored.astype(np.int64)
        arguments = multiplier.apply(rows - rows.max(axis=-1, keepdims=True)) + 32767
        exponentials = interpolate(exp_table, np.clip(arguments, -32768, 32767))
        sums = np.minimum(exponentials.sum(axis=-1, keepdims=True), (1 << 31) - 1)
        headroom = leading_zeros(sums)
        fraction = ((sums << (headroom - 1)) + (1 << 13)) >> 14
        arguments = np.clip(fraction - (1 << 15) - (1 << 16), -32768, 32767)
        inverse = interpolate(reciprocal_table, arguments)
        shift = 31 - headroom
        result = (exponentials * inverse + np.left_shift(1, shift - 1)) >> shift
        out[...] = np.clip(result, 0, 32767)

    return compute
