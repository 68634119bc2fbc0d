"""Expressions in fixed point, bit for bit TFLite's, for elements that float32 cannot do justice.

Notes
-----
A multiplier comes as three float32: its upper bits, its lower 16 bits and its shift, to the left
if positive; `lowering.fixed_elementwise` makes them. Products are of two int32, in int64.

References
----------
TFLite reference kernels ``add.h``, ``integer_ops/add.h``, ``mul.h``, ``squared_difference.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, sub

from armpy_numba_acc.llvm.control import replaced
from armpy_numba_acc.llvm.values import I32, I64, CodeValue, choose, clamp
from armpy_numba_acc.tiles.elementwise.functions import requantize

Combine = Callable[[CodeValue, CodeValue], CodeValue]
"""A sum or a difference."""

_WORD_BITS = 15
"""Bits that 16-bit elements are shifted left by before they are added."""

_BYTE_BITS = 7
"""The same for differences of bytes."""

_SUM_BITS = 20
"""The same for sums of bytes."""


def _rescaled(value: CodeValue, high: CodeValue, low: CodeValue, shift: CodeValue) -> CodeValue:
    """int32 times a multiplier, rounded twice, as int64.

    Ties up, then ties away from zero, are one shift: see `Requantization`.
    """
    multiplier = (high.to_integer() << 16) | low.to_integer()
    shift = _wide(shift)
    left, right = choose(shift > 0, shift, 0), choose(shift < 0, -shift, 0)
    product = value.signed(I64) * multiplier.signed(I64)
    product = (product << left) + (1 << 30)
    is_rounded_twice = right > 0
    unit = right.like(1)
    half = choose(is_rounded_twice, unit << (right + 30), 0)
    step = choose(is_rounded_twice, unit << 31, 0)
    return (product + half - ((product >> 63) & step)) >> (right + 31)


def _terms(values: Iterable[CodeValue], bits: int, numbers: Sequence[CodeValue]) -> list[CodeValue]:
    """Elements that are shifted to the left, each times a multiplier of its own, as int64."""
    multipliers = (numbers[k : k + 3] for k in range(0, len(numbers), 3))
    return [
        _rescaled(value << bits, *multiplier)
        for value, multiplier in zip(values, multipliers, strict=True)
    ]


def _sum_of(combine: Combine) -> Callable[..., CodeValue]:
    """A sum or a difference of 16-bit elements that are first brought to one scale."""

    def compute(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
        terms = _terms((a, b), _WORD_BITS, numbers[:6])
        total = combine(*(term.narrowed(I32) for term in terms))
        return stored(_rescaled(total, *numbers[6:9]), *numbers[9:])

    return compute


def exact_byte_sum(
    x: CodeValue, y: CodeValue, multipliers: Sequence[CodeValue], combine: Combine = add
) -> CodeValue:
    """A sum of int32 that are bytes less their zero points, in steps of the output, as int64."""
    total = combine(*_terms((x, y), _SUM_BITS, multipliers[:6]))
    return _rescaled(total.narrowed(I32), *multipliers[6:])


def _byte_sum_of(combine: Combine) -> Callable[..., CodeValue]:
    """A sum or a difference of bytes, in float32 unless that is near a tie.

    The last parameters are the margin within which float32 may be wrong, and three multipliers.
    """

    def compute(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
        a_zero, a_scale, b_zero, b_scale, zero, low, high, margin, *multipliers = numbers
        moved = b.to_float().times_plus(b_scale, -(a_zero * a_scale + b_zero * b_scale))
        steps = a.to_float().times_plus(a_scale, moved)

        def exactly() -> CodeValue:
            """The same in fixed point."""
            integers = (a - a_zero.to_integer(), b - b_zero.to_integer())
            rounded = exact_byte_sum(*integers, multipliers, combine)
            return stored(rounded + _wide(zero), low, high)

        return _unless_near_tie(steps, (zero, low, high), margin, exactly)

    return compute


_BASE = 1536.0
"""Added to bytes of either sign: float32 from 1024 to 2048, whose fractions have 13 bits. The
lower 8 bits in front of these are the byte's."""

_FRACTION_BITS = 13


def _unless_near_tie(
    steps: CodeValue,
    bounds: tuple[CodeValue, ...],
    margin: CodeValue,
    exactly: Callable[[], CodeValue],
) -> CodeValue:
    """Stored bytes of float32, or the exact result where one is near a tie.

    Parameters
    ----------
    bounds
        Zero point, lowest and highest stored integer.
    margin
        How near a tie is, in steps: a power of two from 2**-12, which is twice what `steps` may
        be off by, to 2**-1, with which all are.
    """
    zero, low, high = bounds
    moved = steps + (zero + (_BASE + 0.5) + margin)
    bits = clamp(moved, low + (_BASE + 0.25), high + (_BASE + 0.75)).bits()
    # Which way numbers next to a tie are rounded shows in these bits; others leave some set.
    unit = 1 << _FRACTION_BITS
    mask = unit - (margin * float(2 * unit)).to_integer()
    return replaced((bits & mask).equals(0), bits >> _FRACTION_BITS, exactly)


def _wide(value: CodeValue) -> CodeValue:
    """Whole numbers of float32 as int64."""
    return value.to_integer().signed(I64)


def stored(value: CodeValue, low: CodeValue, high: CodeValue) -> CodeValue:
    """int64 within bounds as int32."""
    return clamp(value, _wide(low), _wide(high)).narrowed(I32)


def _shifted(value: CodeValue, right: CodeValue) -> CodeValue:
    """int32 divided by a power of two, ties away from zero."""
    right = right.to_integer()
    half = choose(right > 0, right.like(1) << (right - 1), 0)
    sign = choose(right > 0, value >> 31, 0)
    return (value + half + sign) >> right


def _shifting_sum_of(combine: Combine) -> Callable[..., CodeValue]:
    """The same where all scales are powers of two: saturated in 16 bits before it is clamped."""

    def compute(
        a: CodeValue,
        b: CodeValue,
        a_right: CodeValue,
        b_right: CodeValue,
        low: CodeValue,
        high: CodeValue,
    ) -> CodeValue:
        total = combine(_shifted(a, a_right), _shifted(b, b_right))
        total = clamp(total, -(1 << 15), (1 << 15) - 1)
        return clamp(total, low.to_integer(), high.to_integer())

    return compute


def _product(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
    """Products of 16-bit elements."""
    return stored(_rescaled(a * b, *numbers[:3]), *numbers[3:])


def _byte_product(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
    """Products of bytes less their zero points, in float32 unless that is near a tie.

    The nudge is how far below a tie fixed point rounds up, as it rounds twice; the last three
    parameters are a multiplier as `requantize` takes it.
    """
    a_zero, b_zero, scale, nudge, zero, low, high, margin, factor, rest, divisor = numbers
    product = (a.to_float() - a_zero) * (b.to_float() - b_zero)
    nudged = product.times_plus(scale, nudge.with_sign_of(product))

    def exactly() -> CodeValue:
        """The same in fixed point."""
        end = high + 1.0
        return requantize(product.to_integer(), zero.like(0), factor, rest, divisor, zero, low, end)

    return _unless_near_tie(nudged, (zero, low, high), margin, exactly)


def _byte_prelu(x: CodeValue, alpha: CodeValue, *numbers: CodeValue) -> CodeValue:
    """Bytes, or products with alpha where negative, in float32 unless that is near a tie."""
    x_zero, alpha_zero, zero, low, high, *scalings = numbers
    steps = x.to_float() - x_zero
    is_positive = steps >= 0.0
    operand = choose(is_positive, steps, steps * (alpha.to_float() - alpha_zero))
    pairs = zip(scalings[:6], scalings[6:], strict=True)
    scale, nudge, margin, factor, rest, divisor = (choose(is_positive, *pair) for pair in pairs)
    nudged = operand.times_plus(scale, nudge.with_sign_of(operand))

    def exactly() -> CodeValue:
        """The same in fixed point."""
        end = high + 1.0
        return requantize(operand.to_integer(), zero.like(0), factor, rest, divisor, zero, low, end)

    return _unless_near_tie(nudged, (zero, low, high), margin, exactly)


def _byte_squared_difference_of(is_larger: tuple[bool, bool]) -> Callable[..., CodeValue]:
    """Squares of differences of bytes that are first brought to one scale.

    Parameters
    ----------
    is_larger
        Which of them have the larger scale, twice which is the common one. They are exact in it.
    """

    def compute(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
        zeros, (scale, nudge, margin), multipliers = numbers[:2], numbers[2:5], numbers[5:14]
        centred = [x - zero.to_integer() for x, zero in zip((a, b), zeros, strict=True)]
        first, other = (
            x << (_BYTE_BITS - 1) if is_exact else _terms((x,), _BYTE_BITS, own)[0].narrowed(I32)
            for x, is_exact, own in zip(
                centred, is_larger, (multipliers[:3], multipliers[3:6]), strict=True
            )
        )
        difference = first - other
        real = difference.to_float()

        def exactly() -> CodeValue:
            """The same in fixed point."""
            steps = _rescaled(difference * difference, *multipliers[6:])
            return stored(steps + _wide(numbers[14]), *numbers[15:])

        steps = (real * scale).times_plus(real, nudge)
        return _unless_near_tie(steps, numbers[14:], margin, exactly)

    return compute


def _leaky(x: CodeValue, zero: CodeValue, *numbers: CodeValue) -> CodeValue:
    """A conversion with one multiplier for negative numbers and another for all others."""
    parts = (numbers[0:3], numbers[3:6])
    positive, negative = (requantize(x, zero, *part, *numbers[6:]) for part in parts)
    return choose(x < zero.to_integer(), negative, positive)


FUNCTIONS: Mapping[str, tuple[Callable[..., CodeValue], int, int]] = {
    "wide_add": (_sum_of(add), 2, 11),
    "wide_sub": (_sum_of(sub), 2, 11),
    "wide_shifting_add": (_shifting_sum_of(add), 2, 4),
    "wide_shifting_sub": (_shifting_sum_of(sub), 2, 4),
    "wide_mul": (_product, 2, 5),
    "byte_add": (_byte_sum_of(add), 2, 17),
    "byte_sub": (_byte_sum_of(sub), 2, 17),
    "byte_mul": (_byte_product, 2, 11),
    "byte_squared_difference_left": (_byte_squared_difference_of((True, False)), 2, 17),
    "byte_squared_difference_right": (_byte_squared_difference_of((False, True)), 2, 17),
    "byte_squared_difference_both": (_byte_squared_difference_of((True, True)), 2, 17),
    "byte_prelu": (_byte_prelu, 2, 17),
    "requantize_leaky": (_leaky, 1, 10),
}
"""Functions by name, with the numbers of their inputs and parameters."""
