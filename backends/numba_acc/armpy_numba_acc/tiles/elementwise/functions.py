"""Elementary functions of vectors of float32.

Notes
-----
The polynomials were fitted to their functions by least squares with weights that level the
relative error. Errors are those of a few roundings, unless a function says otherwise.
"""

from __future__ import annotations

import math

from armpy_numba_acc.llvm.values import F16, F32, F64, I16, I32, I64, CodeValue, choose, clamp
from armpy_numba_acc.tiles.elementwise.library_calls import from_library

_MAGIC = 12582912.0
"""1.5 * 2**23: a float32 that is added to it loses its fraction to rounding, ties to even."""

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693359375  # few bits: its products with exponents are exact
_LN2_LOW = math.log(2) - _LN2_HIGH
_EXP = (0.4999999953, 0.1666657369, 0.04166686098, 0.008363739844, 0.001390152972)
_QUICK_EXP2 = (0.69328293, 0.24221027, 0.05500816)
_EXP2 = (0.6931471433, 0.2402235015, 0.05550500584, 0.009666341647, 0.001333353339)
_LOG = (
    0.3333331964,
    -0.2499997074,
    0.2000388506,
    -0.166714338,
    0.1411534478,
    -0.12322014,
    0.1344621707,
    -0.1225417969,
)
_TWO_THIRDS_BITS = 0x3F2AAAAB
_ONE_BITS = 0x3F800000
_MAGIC_BITS = 0x4B400000
_ROOT_OF_HALF = 0.7071067811865476
_ROOT_OF_TWO_OVER_PI = 0.7978845608028654
_BELOW_HALF = 0.49999997
"""The largest float32 below one half: added to 0.49999997 it does not round up to 1."""


def _polynomial(x: CodeValue, coefficients: tuple[float, ...]) -> CodeValue:
    """A polynomial, its constant term first."""
    result = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result.times_plus(x, coefficient)
    return result


def round_to_even(x: CodeValue) -> CodeValue:
    """Integers next to floats of either size, ties to even."""
    magnitude, whole = abs(x), 2.0 ** (52 if x.element == F64 else 23)
    rounded = ((magnitude + whole) - whole).with_sign_of(x)
    return choose(magnitude < whole, rounded, x)


def round_half_away(x: CodeValue) -> CodeValue:
    """int32 next to floats that fit, ties away from zero."""
    return (x + x.like(_BELOW_HALF).with_sign_of(x)).to_integer()


def to_stored(steps: CodeValue, zero: CodeValue, low: CodeValue, high: CodeValue) -> CodeValue:
    """Stored integers, as int32, of quantised numbers; bounds are counted from the zero point."""
    return round_half_away(clamp(steps, low, high)) + zero.to_integer()


def to_stored_even(steps: CodeValue, zero: CodeValue, low: CodeValue, high: CodeValue) -> CodeValue:
    """The same with ties to even, as int32 by way of floats."""
    return round_to_even(clamp(steps, low, high)).to_integer() + zero.to_integer()


def to_low_bits(
    steps: CodeValue, zero: CodeValue, low: CodeValue, high: CodeValue
) -> tuple[CodeValue, CodeValue]:
    """Stored integers of at most 16 bits, in the lower half of integers, and what was cut off.

    For `steps` below 2**20, ties to even. `low` and `high` are stored integers. A float32 next
    to `_MAGIC` ends with the bits of the addend; those of `_MAGIC` itself end with 16
    zeros.
    """
    moved, rest = _moved(steps, zero)
    lowest, highest = (limit.to_integer() + _MAGIC_BITS for limit in (low, high))
    return clamp(moved.bits(), lowest, highest), rest


def nearest_and_rest(steps: CodeValue, zero: CodeValue) -> tuple[CodeValue, CodeValue]:
    """Stored integers, as int32, next to `steps`, and the rounding error; as `to_low_bits`."""
    moved, rest = _moved(steps, zero)
    return moved.bits() - _MAGIC_BITS, rest


def _moved(steps: CodeValue, zero: CodeValue) -> tuple[CodeValue, CodeValue]:
    """Numbers next to `_MAGIC` by the distance of stored integers, and the rounding error."""
    offset = zero + _MAGIC
    moved = steps + offset
    return moved, steps - (moved - offset)


def floor(x: CodeValue) -> CodeValue:
    """Integers at or below floats."""
    rounded = round_to_even(x)
    return choose(rounded > x, rounded - 1.0, rounded).with_sign_of(x)


_HALF_INFINITY = 0x7C00
_HALF_OVERFLOW = 65520.0
"""The smallest float32 that no float16 is next to."""

_SMALLEST_NORMAL_HALF = 2.0**-14
_SMALLEST_HALF = 2.0**-24


def half_to_float(bits: CodeValue) -> CodeValue:
    """float32 of float16, whose bits come as int32."""
    magnitude = bits & 0x7FFF
    # Float16's exponent in float32's place is too small by 112.
    normal = ((magnitude << 13) + (112 << 23)).as_float()
    # Programs flush float32's subnormals: float16's must not be looked at as such.
    subnormal = magnitude.to_float() * _SMALLEST_HALF
    finite = choose(magnitude < 0x400, subnormal, normal)
    special = ((magnitude << 13) | 0x7F800000).as_float()
    sign = ((bits & 0x8000) << 16).as_float()
    return choose(magnitude >= _HALF_INFINITY, special, finite).with_sign_of(sign)


def float_to_half(x: CodeValue) -> CodeValue:
    """Bits of the float16 next to float32, ties to even, as int32."""
    magnitude = abs(x)
    bits = magnitude.bits()
    normal = (bits - (112 << 23) + 0xFFF + ((bits >> 13) & 1)) >> 13
    # Numbers next to 1/2 have steps of the smallest float16.
    subnormal = (magnitude + 0.5).bits() - 0x3F000000
    result = choose(magnitude < _SMALLEST_NORMAL_HALF, subnormal, normal)
    result = choose(magnitude < _HALF_OVERFLOW, result, _HALF_INFINITY)
    quiet = ((bits >> 13) & 0x3FF) | (_HALF_INFINITY | 0x200)
    result = choose(x.differs(x), quiet, result)
    return result | ((x.bits() >> 16) & 0x8000)


def converted_half(bits: CodeValue) -> CodeValue:
    """`half_to_float` by the processor, which supports float16's subnormals."""
    return bits.narrowed(I16).converted("bitcast", F16).converted("fpext", F32)


def converted_to_half(x: CodeValue) -> CodeValue:
    """`float_to_half` by the processor."""
    return x.converted("fptrunc", F16).converted("bitcast", I16).unsigned(I32)


def floor_double(x: CodeValue) -> CodeValue:
    """Integers at or below float64 whose magnitude is below 2**51."""
    rounded = (x + _ROUND_DOUBLE) - _ROUND_DOUBLE
    return choose(rounded > x, rounded - 1.0, rounded)


def requantize(
    x: CodeValue,
    x_zero: CodeValue,
    factor: CodeValue,
    rest: CodeValue,
    divisor: CodeValue,
    zero: CodeValue,
    low: CodeValue,
    end: CodeValue,
) -> CodeValue:
    """Stored integers of at most 16 bits in another quantisation, as fixed point has them.

    ``factor + rest`` is the multiplier with its left shift, the divisor a power of two; `end`
    is one above the highest integer, which float32 may not hold. All steps are exact in
    float64: rounding to multiples of ``1 / divisor`` with ties up, then to integers with ties
    away from zero.
    """
    steps = x.converted("sitofp", F64) - x_zero.to_double()
    first = floor_double(steps * (factor.to_double() + rest.to_double()) + 0.5)
    second = floor_double(abs(first) / divisor.to_double() + 0.5).with_sign_of(first)
    stored = clamp(second + zero.to_double(), low.to_double(), end.to_double() - 1.0)
    return stored.converted("fptosi", I32)


def ceil(x: CodeValue) -> CodeValue:
    """Integers at or above floats."""
    return -floor(-x)


def _split_exponent(x: CodeValue) -> tuple[CodeValue, CodeValue]:
    """Split into ``n ln 2 + r``: a small r, and n in the low bits of integers."""
    shifted = x.times_plus(_LOG2_E, _MAGIC)
    n = shifted - _MAGIC
    r = n.times_plus(-_LN2_HIGH, x)
    return n.times_plus(-_LN2_LOW, r), shifted.bits()


def _power_of_two(bits: CodeValue) -> CodeValue:
    """``2**n`` for an integer of at most 127 and at least -126 in a vector's low bits."""
    return ((bits << 23) + _ONE_BITS).as_float()


def _exp_tail(r: CodeValue) -> CodeValue:
    """``exp(r) - 1`` for a small r."""
    return _polynomial(r, _EXP).times_plus(r * r, r)


def exp(x: CodeValue) -> CodeValue:
    """Exponentials, 0 and infinity beyond what float32 holds."""
    r, bits = _split_exponent(clamp(x, -105.0, 90.0))
    # Two factors, as 2**n may be beyond float32 where the product is not.
    half = (bits - _MAGIC_BITS) >> 1
    first, rest = _power_of_two(half), _power_of_two(bits - half)
    return (_exp_tail(r) + 1.0) * first * rest


def exp_within(x: CodeValue) -> CodeValue:
    """Exponentials of numbers that are moved into -88 to 87; 0 for -88, whose scale is 0."""
    r, bits = _split_exponent(clamp(x, -88.0, 87.0))
    scale = _power_of_two(bits)
    return _exp_tail(r).times_plus(scale, scale)


def expm1(x: CodeValue) -> CodeValue:
    """``exp(x) - 1`` without loss near 0, of numbers that are moved into -87 to 87."""
    r, bits = _split_exponent(clamp(x, -87.0, 87.0))
    scale = _power_of_two(bits)
    return _exp_tail(r).times_plus(scale, scale - 1.0)


def sigmoid(x: CodeValue) -> CodeValue:
    """``1 / (1 + exp(-x))``, right to 2e-7 next to 1 and to 1e-5 of itself near 0."""
    # exp from a power of 2 in one step: the error where it is far from 1 is hardly seen. The
    # reciprocal of 2**127 is subnormal, and flushed: it ends in 0.
    scaled = clamp(x * -_LOG2_E, -126.0, 127.0)
    shifted = scaled + _MAGIC
    rest = scaled - (shifted - _MAGIC)
    scale = _power_of_two(shifted.bits())
    exponential = (_polynomial(rest, _EXP2) * rest).times_plus(scale, scale)
    return 1.0 / (exponential + 1.0)


def quick_sigmoid(x: CodeValue) -> CodeValue:
    """``1 / (1 + exp(-x))``, right to 2**-12; 16 elements on processors with AVX-512."""
    scaled = clamp(x * -_LOG2_E, -200.0, 200.0)  # of an infinity nothing can be cut off
    whole = scaled.call("roundeven")
    rest = scaled - whole
    exponential = _scaled(_polynomial(rest, _QUICK_EXP2).times_plus(rest, x.like(1.0)), whole)
    return _nearly_reciprocal(exponential + 1.0)


def _scaled(x: CodeValue, exponent: CodeValue) -> CodeValue:
    """``x * 2**exponent``, 0 and infinity beyond what float32 holds."""
    mask, mode = x.code.constant(I16, -1), x.code.constant(I32, 4)
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    return x.code.call(name, x.kind, x, exponent, x, mask, mode)


def _nearly_reciprocal(x: CodeValue) -> CodeValue:
    return x.code.call("llvm.x86.avx512.rcp14.ps.512", x.kind, x, x, x.code.constant(I16, -1))


def tanh(x: CodeValue) -> CodeValue:
    """Hyperbolic tangents."""
    t = expm1(abs(x) * -2.0)
    return (-t / (t + 2.0)).with_sign_of(x)


def log(x: CodeValue) -> CodeValue:
    """Natural logarithms: minus infinity of 0, NaN of negative numbers."""
    is_tiny = x < 2.0**-126
    bits = choose(is_tiny, x * 2.0**23, x).bits()
    exponent = (bits - _TWO_THIRDS_BITS) >> 23
    f = (bits - (exponent << 23)).as_float() - 1.0
    n = choose(is_tiny, exponent - 23, exponent).to_float()
    square = f * f
    tail = _polynomial(f, _LOG).times_plus(f * square, n * _LN2_LOW)
    result = n.times_plus(_LN2_HIGH, square.times_plus(-0.5, tail) + f)
    result = choose(x.equals(0.0), -math.inf, result)
    result = choose(x.equals(math.inf), x, result)
    return choose(x >= 0.0, result, math.nan)


def log1p_of_exp(x: CodeValue) -> CodeValue:
    """``log(1 + exp(x))`` without an infinity in between."""
    exponential = exp_within(-abs(x))
    whole = exponential + 1.0
    # The rounding error of the sum, which is all there is of small exponentials.
    lost = exponential - (whole - 1.0)
    logarithm = log(whole) + lost / whole
    return choose(x > 0.0, x, choose(x.differs(x), x, 0.0)) + logarithm


def elu(x: CodeValue, alpha: CodeValue) -> CodeValue:
    """``x``, or ``alpha (exp(x) - 1)`` where negative."""
    return choose(x >= 0.0, x, alpha * expm1(x))


def hard_swish(x: CodeValue) -> CodeValue:
    """``x min(6, max(0, x + 3)) / 6``."""
    return clamp(x + 3.0, 0.0, 6.0) * x * (1.0 / 6.0)


_ERFC = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


_ERF = (
    1.128379167057,
    -0.3761263842596,
    0.1128378183912,
    -0.02686539212459,
    0.005220923216109,
    -0.0008482507738862,
    0.0001125464074300,
    -9.634991149699e-06,
)
"""Of the error function's quotient by x from -1 to 1, in squares."""


def _complement_of_erf(z: CodeValue) -> CodeValue:
    """``1 - erf(z)`` of numbers that are not negative, right to 1.5e-7.

    Reference: Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, equation 7.1.26.
    """
    t = 1.0 / z.times_plus(0.3275911, 1.0)
    return _polynomial(t, _ERFC) * t * exp_within(-(z * z))


def erf(x: CodeValue) -> CodeValue:
    """The error function, right to 2e-7 of itself."""
    z = abs(x)
    far = (1.0 - _complement_of_erf(z)).with_sign_of(x)
    return choose(z < 1.0, _polynomial(x * x, _ERF) * x, choose(x.differs(x), x, far))


def gelu(x: CodeValue) -> CodeValue:
    """``x`` times the probability that a standard normal variable is below it."""
    upper = _complement_of_erf(abs(x) * _ROOT_OF_HALF)
    return x * 0.5 * choose(x > 0.0, 2.0 - upper, upper)


def mish(x: CodeValue) -> CodeValue:
    """``x tanh(log(1 + exp(x)))``."""
    # The factor is 1 to the last bit from 20 on.
    exponential = exp_within(choose(x < 20.0, x, 20.0))
    n = exponential * (exponential + 2.0)
    return x * (n / (n + 2.0))


def sign(x: CodeValue) -> CodeValue:
    """1 with the sign of `x`; zeros and NaN as they are."""
    return choose(x > 0.0, 1.0, choose(x < 0.0, -1.0, x))


def gelu_by_tanh(x: CodeValue) -> CodeValue:
    """The approximation of `gelu` with tanh."""
    cubic = x + x * 0.044715 * x * x
    return x * 0.5 * (tanh(cubic * _ROOT_OF_TWO_OVER_PI) + 1.0)


_ROUND_DOUBLE = 6755399441055744.0
"""1.5 * 2**52: what `_MAGIC` is to float64."""

_QUARTER = 0.7853981633974483
_HALF_PI_HIGH = 1.5707963267948966
_HALF_PI_LOW = 6.123233995736766e-17


_LARGEST_ANGLE = 2.0**27
"""Larger ones need more of pi than two float64 hold."""


def _sine(x: CodeValue, quarters: int) -> CodeValue:
    """Sine of ``x + quarters pi / 2``, reduced in float64."""
    wide = x.to_double()
    shifted = wide.times_plus(1 / _HALF_PI_HIGH, _ROUND_DOUBLE)
    n = shifted - _ROUND_DOUBLE
    r = n.times_plus(-_HALF_PI_LOW, n.times_plus(-_HALF_PI_HIGH, wide)).to_single()
    quadrant = shifted.converted("bitcast", I64).converted("trunc", I32) + quarters
    square = r * r
    sine = _polynomial(square, _SINE) * square * r + r
    cosine = _polynomial(square, _COSINE) * square + 1.0
    result = choose((quadrant & 1).equals(0), sine, cosine)
    result = (result.bits() ^ ((quadrant & 2) << 30)).as_float()
    return from_library(("sin", "cos")[quarters], [x], abs(x) > _LARGEST_ANGLE, result)


_SINE = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880)
_COSINE = (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800)


def sin(x: CodeValue) -> CodeValue:
    """Sines."""
    return _sine(x, 0)


def cos(x: CodeValue) -> CodeValue:
    """Cosines."""
    return _sine(x, 1)


def floor_divide(x: CodeValue, y: CodeValue) -> CodeValue:
    """Quotients rounded down after a division in float64."""
    return floor(x.to_double() / y.to_double()).to_single()


_EXACT_QUOTIENT = 2.0**28
"""float64 hold smaller ones, whole, and their products with a float32."""


def truncate_modulo(x: CodeValue, y: CodeValue) -> CodeValue:
    """Rests of quotients rounded towards zero."""
    dividend, divisor = x.to_double(), y.to_double()
    quotient = abs(dividend / divisor)
    rest = abs(dividend) - floor(quotient) * abs(divisor)
    is_exact = (quotient < _EXACT_QUOTIENT) & (abs(y) < math.inf)
    return from_library("fmod", [x, y], is_exact ^ 1, rest.to_single().with_sign_of(x))


def floor_modulo(x: CodeValue, y: CodeValue) -> CodeValue:
    """Rests of quotients rounded down; a rest of 0 has the sign of the divisor."""
    rest = truncate_modulo(x, y)
    is_other = ((rest.bits() ^ y.bits()) < 0) & rest.differs(0.0)
    return choose(rest.equals(0.0), rest.with_sign_of(y), choose(is_other, rest + y, rest))


_ATAN = (-0.333329491539, 0.199777106478, -0.138776856032, 8.05374449538e-2)
"""Of ``atan(x) / x - 1`` divided by the square of x, in squares, below tan(pi / 8)."""


def atan(x: CodeValue) -> CodeValue:
    """Arc tangents.

    Reference: Moshier, Cephes library, ``atanf``.
    """
    magnitude = abs(x)
    is_far, is_near = magnitude > 2.414213562373095, magnitude <= 0.4142135623730950
    is_near = is_near | x.is_nan()
    turn = choose(is_far, 2 * _QUARTER, choose(is_near, x.like(0.0), _QUARTER))
    above = choose(is_far, -1.0, choose(is_near, magnitude, magnitude - 1.0))
    below = choose(is_far, magnitude, choose(is_near, 1.0, magnitude + 1.0))
    r = above / below
    square = r * r
    return (turn + (_polynomial(square, _ATAN) * square).times_plus(r, r)).with_sign_of(x)


_LOG2_TERMS = tuple(2 / (math.log(2) * (2 * k + 1)) for k in range(9))
_EXP2_TERMS = tuple(math.log(2) ** k / math.factorial(k) for k in range(10))


def power(x: CodeValue, y: CodeValue) -> CodeValue:
    """``x**y`` as C defines it, computed in float64."""
    magnitude = abs(x)
    # All float32 are normal numbers of float64, whose bits are an exponent and a fraction.
    bits = magnitude.to_double().converted("bitcast", I64)
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = (bits - (exponent << 52)).converted("bitcast", F64)
    s = (m - 1.0) / (m + 1.0)
    logarithm = _polynomial(s * s, _LOG2_TERMS) * s + exponent.converted("sitofp", F64)
    logarithm = choose(magnitude.equals(0.0), -math.inf, logarithm)
    logarithm = choose(magnitude.equals(math.inf), math.inf, logarithm)
    product = clamp(logarithm * y.to_double(), -300.0, 300.0)
    shifted = product + _ROUND_DOUBLE
    scale = ((shifted.converted("bitcast", I64) << 52) + 0x3FF0000000000000).converted(
        "bitcast", F64
    )
    fraction = product - (shifted - _ROUND_DOUBLE)
    result = (_polynomial(fraction, _EXP2_TERMS) * scale).to_single()
    return _with_sign(x, y, choose(x.differs(x), x, result))


def _with_sign(x: CodeValue, y: CodeValue, result: CodeValue) -> CodeValue:
    """A power of magnitudes, with the sign that the base gives it."""
    is_whole = round_to_even(y).equals(y)
    half = y * 0.5
    is_odd = is_whole & half.differs(round_to_even(half))
    result = choose(is_odd, result.with_sign_of(x), result)
    # Not whole: NaN of negative numbers, but 0 and infinity have powers of any exponent.
    # Subnormal numbers count as 0. LLVM does not know: it looks at the sign alone for ``x < 0``.
    is_negative = (x <= -(2.0**-126)) & x.differs(-math.inf)
    result = choose(is_negative & (is_whole ^ 1), math.nan, result)
    is_minus_one = x.equals(-1.0) & abs(y).equals(math.inf)
    return choose(y.equals(0.0) | x.equals(1.0) | is_minus_one, 1.0, result)
