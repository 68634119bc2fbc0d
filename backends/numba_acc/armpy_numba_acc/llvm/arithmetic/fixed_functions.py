"""Elementary functions in fixed point as gemmlowp and TFLite define them, for Numba's code.

Notes
-----
Each is that of the same name in `armpy.core.numerics`, of one int64.

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``; TFLite ``kernels/internal/common.h``.
"""

from __future__ import annotations

from armpy.core.numerics import gemmlowp
from armpy.core.numerics import logarithm as logarithms
from armpy_numba_acc.llvm.arithmetic.fixed_point import halved, limited
from armpy_numba_acc.llvm.primitives import WORD, compiled, primitive
from armpy_numba_acc.llvm.values import I1, I64, Code, CodeValue

_ONE = (1 << 31) - 1
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1

_PLUS_48_17THS, _MINUS_32_17THS = gemmlowp.PLUS_48_17THS, gemmlowp.MINUS_32_17THS
_HALF_ROOT_OF_TWO = gemmlowp.HALF_ROOT_OF_TWO

_LOG_OF_TWO, _ROOT_OF_HALF = logarithms.LOG_OF_TWO, logarithms.ROOT_OF_HALF
_FOURTH_ROOT_OF_HALF = logarithms.FOURTH_ROOT_OF_HALF
_NUMERATOR = logarithms.NUMERATOR
_DENOMINATOR_SQUARE = logarithms.DENOMINATOR_SQUARE
_DENOMINATOR_CONSTANT = logarithms.DENOMINATOR_CONSTANT
_DENOMINATOR_LINEAR = logarithms.DENOMINATOR_LINEAR
_POWER_BITS = 25
"""Fraction bits of powers of two in logarithms."""


@primitive(WORD, WORD)
def leading_zeros(code: Code, value: CodeValue) -> CodeValue:
    """Leading zeros of a number from 1 to 2**32 - 1, in 32 bits."""
    return code.call("llvm.ctlz.i64", I64, value, code.constant(I1, 1)) - 32


@compiled
def multiplied_high(one: int, other: int) -> int:
    """The high half of twice a product of two numbers of 32 bits, rounded half up."""
    return min((one * other + (1 << 30)) >> 31, _HIGHEST)


@compiled
def shifted_left(value: int, exponent: int) -> int:
    """A number shifted to the left, within 32 bits."""
    return limited(value << exponent, _LOWEST, _HIGHEST)


@compiled
def one_over_one_plus(value: int) -> int:
    """``1 / (1 + x)`` for x in [0, 1], without integer bits."""
    half_denominator = (value + _ONE + 1) >> 1
    x = multiplied_high(half_denominator, _MINUS_32_17THS) + _PLUS_48_17THS
    for _ in range(3):
        error = (1 << 29) - multiplied_high(half_denominator, x)
        x += shifted_left(multiplied_high(x, error), 2)
    return shifted_left(x, 1)


@compiled
def logarithm(value: int, integer_bits: int) -> int:
    """Natural logarithm of a number of at least 1, with 5 integer bits."""
    headroom = leading_zeros(value) - 1
    normalized = shifted_left(value, headroom)
    first = shifted_left(multiplied_high(normalized, _ROOT_OF_HALF), 1)
    quarter = 1 << (_POWER_BITS - 2)
    power = shifted_left(integer_bits - headroom - 1, _POWER_BITS) + quarter
    headroom = leading_zeros(multiplied_high(value, _ROOT_OF_HALF)) - 1
    second = shifted_left(value, headroom)
    other = shifted_left(integer_bits - headroom, _POWER_BITS) - quarter
    power = max(limited(power, _LOWEST, _HIGHEST), limited(other, _LOWEST, _HIGHEST))
    rest = _logarithm_around_root(min(first, second))
    return shifted_left(multiplied_high(power, _LOG_OF_TWO) + rest, 1)


@compiled
def _logarithm_around_root(r: int) -> int:
    """Logarithm of ``r / fourth root of 1/2``, with one integer bit more than the result."""
    middle = (r + _FOURTH_ROOT_OF_HALF + 1) >> 1
    q = 2 * (r - _FOURTH_ROOT_OF_HALF)
    square = multiplied_high(q, q)
    cube = multiplied_high(q, square)
    numerator = multiplied_high(q, r) + multiplied_high(cube, _NUMERATOR)
    factor = _DENOMINATOR_CONSTANT + q + multiplied_high(square, _DENOMINATOR_SQUARE)
    denominator = multiplied_high(middle, factor) + multiplied_high(q, _DENOMINATOR_LINEAR)
    return multiplied_high(halved(numerator, 6), one_over_one_plus(denominator))


@compiled
def inverse_square_root(value: int) -> tuple[int, int]:
    """``1 / sqrt(x)`` of a number below 2**31 as a multiplier and a left shift; of 0 as of 1.

    Reference: TFLite ``GetInvSqrtQuantizedMultiplierExp``.
    """
    if value <= 1:
        return _HIGHEST, 0
    down = 1 if value >= 1 << 29 else 0
    value >>= 2 * down
    up = (leading_zeros(value) - 3) // 2
    half = halved((value << (2 * up)) >> 1, 1)
    x = 1 << 28
    for _ in range(5):
        cube = shifted_left(multiplied_high(multiplied_high(x, x), x), 6)
        x = shifted_left(multiplied_high(x, 3 << 27) - multiplied_high(half, cube), 3)
    right = 11 + down - up
    return multiplied_high(x, _HALF_ROOT_OF_TWO) << max(-right, 0), -max(right, 0)
