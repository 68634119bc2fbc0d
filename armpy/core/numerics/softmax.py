"""Tables and limits of softmax in integers.

References
----------
TFLite ``activations.cc`` (``SoftmaxPrepare``), reference kernel ``softmax.h``;
``quantization_util.cc`` (``PreprocessSoftmaxScaling``, ``CalculateInputRadius``).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier, quantize_multiplier
from armpy.core.numerics.gemmlowp import exp_on_negative_values
from armpy.core.numerics.lookup_table import interpolation_table
from armpy.core.numerics.rounding import Int64Array, rounding_shift_right

ARGUMENT_INTEGER_BITS = 5
"""Integer bits of the arguments of the exponential function for 8-bit rows."""

SUM_INTEGER_BITS = 12
"""Integer bits of sums of exponentials of 8-bit rows."""

ARGUMENT_STEP = 10.0 / 65535
"""Scale of the arguments of the exponential function for 16-bit rows, which reach over 10."""


def argument_multiplier(scale: float, beta: float) -> tuple[int, int]:
    """Quantised multiplier from differences of 8-bit integers to arguments of the exponential.

    `scale` of the input and `beta` are taken as float32. Arguments have `ARGUMENT_INTEGER_BITS`
    and 32 bits in all.

    Reference: TFLite ``PreprocessSoftmaxScaling``.
    """
    real = float(np.float32(beta)) * float(np.float32(scale)) * (1 << (31 - ARGUMENT_INTEGER_BITS))
    # The reference's own limit, for large scales.
    return quantize_multiplier(min(real, (1 << 31) - 1.0))


def input_radius(shift: int, integer_bits: int = ARGUMENT_INTEGER_BITS) -> int:
    """Largest difference of 8-bit integers whose argument fits its integer bits.

    `shift` is that of `argument_multiplier`.

    Reference: TFLite ``CalculateInputRadius``.
    """
    highest = (1 << integer_bits) - 1
    return math.floor(highest * 2.0 ** (31 - integer_bits - shift))


class Exponentials:
    """Exponentials of all 256 differences from the largest 8-bit integer of a row.

    `arguments` are minus the difference times beta times the input's scale, with 5 integer bits.
    `values` are their exponentials without integer bits, 0 beyond the `radius`, the largest
    difference that has an argument; `summands` are these with 12 integer bits. An argument times
    `per_argument` is a difference again.

    Reference: TFLite reference kernels ``softmax.h``, ``log_softmax.h``.
    """

    def __init__(self, scale: float, beta: float) -> None:
        self.multiplier, self.shift = argument_multiplier(scale, beta)
        self.per_argument = 2.0 ** (31 - self.shift) / max(self.multiplier, 1)
        self.radius = input_radius(self.shift)
        differences = np.arange(256)
        inside = differences <= self.radius
        factor = Multiplier.from_pairs([(self.multiplier, self.shift)], ())
        # Beyond the radius the argument would overflow; its exponential is 0 below.
        self.arguments = factor.apply(np.where(inside, -differences, 0))
        exponentials = exp_on_negative_values(self.arguments, ARGUMENT_INTEGER_BITS)
        self.values = np.where(inside, exponentials, 0)
        self.summands = self.values.copy()
        rounding_shift_right(self.summands, SUM_INTEGER_BITS, out=self.summands)

    def sums_of(self, differences: npt.NDArray[np.uint8]) -> Int64Array:
        """Sums of rows of summands, saturated to 32 bits as the functions of them need it."""
        sums = self.summands[differences].sum(axis=-1, keepdims=True)
        result: Int64Array = np.minimum(sums, (1 << 31) - 1)
        return result


@cache
def softmax16_tables() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """Lookup tables of the softmax of 16-bit rows, for `lookup_table.interpolate`.

    Tables of 513 samples of ``exp(x)`` for x in [-10, 0] and of ``1 / (1 + x)`` for x in [0,
    1], with 15 fraction bits, computed in float64.
    """
    target = (2.0 / 65535, 0)
    exponentials = interpolation_table(np.exp, (ARGUMENT_STEP, 32767), target, np.float64)
    reciprocals = interpolation_table(
        lambda x: 1 / (1 + x), (1.0 / 65535, -32768), target, np.float64
    )
    return exponentials, reciprocals
