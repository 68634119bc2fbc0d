"""Functions of two stored integers, for kernels and for tables of all pairs of bytes.

References
----------
TFLite ``div.cc`` and the reference kernel ``div.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier, multiply_high
from armpy.core.numerics.logarithm import reciprocal
from armpy.core.numerics.lookup_table import Stored
from armpy.core.numerics.quantization import QuantizationParameters
from armpy.core.numerics.rounding import (
    Int64Array,
    leading_zeros,
    round_half_away,
    rounding_shift_right,
)

__all__ = ["PairFunction", "quotients", "through_reals"]

PairFunction: TypeAlias = Callable[[Stored, Stored], Int64Array]
"""Computes stored integers, in a new array, from two arrays of them that broadcast."""


def quotients(
    operands: tuple[QuantizationParameters, QuantizationParameters],
    target: QuantizationParameters,
    bounds: tuple[int, int],
) -> PairFunction:
    """DIV of 8 bits, as a product with a fixed-point reciprocal, clamped to `bounds`.

    The numerator is shifted left as far as it goes. A quotient by 0 saturates, 0 / 0 is 0; the
    reference refuses to compute them.

    Reference: TFLite ``reference_ops::DivElementwise``.
    """
    lhs, rhs = operands
    with np.errstate(all="ignore"):  # of odd scales
        factor = lhs.scale / (rhs.scale * target.scale)
    multiplier = Multiplier.from_real(float(factor))
    shift = multiplier.left_shift - multiplier.right_shift

    def compute(left: Stored, right: Stored) -> Int64Array:
        numerator, denominator = np.broadcast_arrays(lhs.centred(left), rhs.centred(right))
        numerator = np.where(denominator < 0, -numerator, numerator)
        inverse, bits_over_unit = reciprocal(np.maximum(np.abs(denominator), 1), 31)
        # A negative number has one bit of headroom more if it is a power of two.
        headroom = leading_zeros(np.where(numerator < 0, ~numerator, numerator)) - 1
        quotient = multiply_high(numerator << headroom, inverse)
        quotient = multiply_high(quotient, multiplier.multiplier)
        right_shift = headroom + bits_over_unit - shift
        quotient <<= np.maximum(-right_shift, 0)
        rounding_shift_right(quotient, np.clip(right_shift, 0, 62), out=quotient)
        quotient = np.where(denominator == 0, numerator << 31, quotient)
        return target.clamped(quotient, *bounds)

    return compute


def through_reals(
    operands: tuple[QuantizationParameters, QuantizationParameters],
    target: QuantizationParameters,
    bounds: tuple[int, int],
    function: Callable[..., npt.NDArray[Any]],  # Any: a ufunc's type is not narrower
) -> PairFunction:
    """Any function of two, by float32 numbers in between; parameters as of `quotients`.

    Halves are rounded away from zero; NaN is taken for 0.
    """

    def compute(left: Stored, right: Stored) -> Int64Array:
        reals = [
            np.subtract(stored, operand.zero_point, dtype=np.float32) * operand.scale
            for stored, operand in zip((left, right), operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            steps = np.divide(function(*reals), target.scale, dtype=np.float32)
        rounded = np.asarray(round_half_away(steps)).astype(np.float64)
        rounded[np.isnan(rounded)] = 0
        clamped: npt.NDArray[np.float64] = np.clip(rounded + target.zero_point, *bounds)
        return clamped.astype(np.int64)

    return compute
