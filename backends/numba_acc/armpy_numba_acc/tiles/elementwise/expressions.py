"""Expressions of elementwise kernels, by name.

Notes
-----
Quantised elements come as int32 and leave as int32. They are computed with as float32 numbers
of steps, which hold sums and products of 8-bit integers exactly; one or two roundings follow
from the scales. Results are rounded with ties away from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.values import (
    F32,
    F64,
    I32,
    I64,
    CodeValue,
    choose,
    clamp,
    larger,
    smaller,
)
from armpy_numba_acc.machine.expressions import INPUTS, PARAMETER
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise import functions as f
from armpy_numba_acc.tiles.elementwise.fixed_expressions import FUNCTIONS as FIXED


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of elements."""

    # Takes a `CodeValue` per input and one per parameter; returns the output's.
    compute: Callable[..., CodeValue]
    num_inputs: int
    num_parameters: int = 0  # float32 numbers, the same for all elements


def _to_steps(value: CodeValue, zero: CodeValue) -> CodeValue:
    """Differences of stored integers from their zero point."""
    return value.to_float() - zero


# Floats


def _squared_difference(a: CodeValue, b: CodeValue) -> CodeValue:
    return (a - b) * (a - b)


def _prelu(x: CodeValue, alpha: CodeValue) -> CodeValue:
    """``x``, or ``alpha x`` where negative."""
    return choose(x >= 0.0, x, x * alpha)


_FLOAT_BINARY: dict[str, Callable[[CodeValue, CodeValue], CodeValue]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "maximum": larger,
    "minimum": smaller,
    "squared_difference": _squared_difference,
    "power": f.power,
    "floor_div": f.floor_divide,
    "floor_mod": f.floor_modulo,
    "trunc_mod": f.truncate_modulo,
}

_FLOAT_UNARY: dict[str, Callable[[CodeValue], CodeValue]] = {
    "abs": abs,
    "exp": f.exp,
    "sqrt": CodeValue.sqrt,
    "rsqrt": lambda x: 1.0 / x.sqrt(),
    "neg": CodeValue.__neg__,
    "log": f.log,
    "sin": f.sin,
    "cos": f.cos,
    "atan": f.atan,
    "ceil": f.ceil,
    "floor": f.floor,
    "round": f.round_to_even,
    "square": lambda x: x * x,
    "sigmoid": f.sigmoid,
    "quick_sigmoid": f.quick_sigmoid,
    "tanh": f.tanh,
    "soft_relu": f.log1p_of_exp,
    "hard_swish": f.hard_swish,
    "gelu": f.gelu,
    "gelu_by_tanh": f.gelu_by_tanh,
    "erf": f.erf,
    "mish": f.mish,
    "sign": f.sign,
    "reciprocal": lambda x: 1.0 / x,
}

_FLOATS: dict[str, Expression] = {
    "clamp": Expression(clamp, 1, 2),
    "linear": Expression(lambda x, a, b: a * x + b, 1, 2),
    "scaled_tanh": Expression(lambda x, a, b: a * f.tanh(b * x), 1, 2),
    "leaky_relu": Expression(lambda x, a: choose(x > 0.0, x, x * a), 1, 1),
    "elu": Expression(f.elu, 1, 1),
    "prelu": Expression(_prelu, 2),
}


# Integers of any width, and stored elements as they are


def _divide(a: CodeValue, b: CodeValue) -> CodeValue:
    """Quotients rounded towards zero, 0 where the divisor is 0."""
    # The two divisors that processors may refuse are kept from them.
    is_refused = b.equals(0) | b.equals(-1)
    quotient = a / choose(is_refused, 1, b)
    return choose(b.equals(0), 0, choose(b.equals(-1), -a, quotient))


def _floor_divide(a: CodeValue, b: CodeValue) -> CodeValue:
    """Quotients rounded down, 0 where the divisor is 0."""
    quotient = _divide(a, b)
    is_rounded_up = (quotient * b).differs(a) & ((a ^ b) < 0) & b.differs(0)
    return choose(is_rounded_up, quotient - 1, quotient)


def _floor_modulo(a: CodeValue, b: CodeValue) -> CodeValue:
    """Rests that belong to quotients rounded down, 0 where the divisor is 0."""
    return choose(b.equals(0), 0, a - _floor_divide(a, b) * b)


def _truncate_modulo(a: CodeValue, b: CodeValue) -> CodeValue:
    """Rests that belong to quotients rounded towards zero, 0 where the divisor is 0."""
    return choose(b.equals(0), 0, a - _divide(a, b) * b)


def _shift_left(a: CodeValue, b: CodeValue) -> CodeValue:
    """Bits moved up; 0 where the distance is negative or as many as there are."""
    is_near = b.is_below(a.element.width)
    return choose(is_near, a << choose(is_near, b, 0), 0)


def _shift_right(a: CodeValue, b: CodeValue) -> CodeValue:
    """Bits moved down, with the sign's after them, which alone is left of such distances."""
    return a >> choose(b.is_below(a.element.width), b, a.element.width - 1)


_INTEGER_BINARY: dict[str, Callable[[CodeValue, CodeValue], CodeValue]] = {
    "add": _FLOAT_BINARY["add"],
    "sub": _FLOAT_BINARY["sub"],
    "mul": _FLOAT_BINARY["mul"],
    "div": _divide,
    "maximum": larger,
    "minimum": smaller,
    "squared_difference": _squared_difference,
    "floor_div": _floor_divide,
    "floor_mod": _floor_modulo,
    "trunc_mod": _truncate_modulo,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_and": CodeValue.__and__,
    "bitwise_or": CodeValue.__or__,
    "bitwise_xor": CodeValue.__xor__,
}

_COMPARISONS: dict[str, Callable[[CodeValue, CodeValue], CodeValue]] = {
    "equal": CodeValue.equals,
    "not_equal": CodeValue.differs,
    "greater": CodeValue.__gt__,
    "greater_or_equal": CodeValue.__ge__,
    "less": CodeValue.__lt__,
    "less_or_equal": CodeValue.__le__,
    "logical_and": CodeValue.__and__,
    "logical_or": CodeValue.__or__,
    "logical_xor": CodeValue.__xor__,
}


_STORED: dict[str, Expression] = {
    "select": Expression(choose, 3),
    "copy": Expression(lambda x: x, 1),
    "logical_not": Expression(lambda x: x ^ 1, 1),
    "int_abs": Expression(abs, 1),
    "int_neg": Expression(CodeValue.__neg__, 1),
    "int_sign": Expression(lambda x: clamp(x, -1, 1), 1),
    "int_square": Expression(lambda x: x * x, 1),
    "int_bitwise_not": Expression(lambda x: x ^ -1, 1),
    "largest_byte": Expression(lambda a, b: a.call("umax", b), 2),
    "pair_of_bytes": Expression(lambda a, b: (a << 8) | b, 2),
    "smallest_byte": Expression(lambda a, b: a.call("umin", b), 2),
    "is_not_zero": Expression(lambda x: x.differs(0), 1),
    "centre": Expression(lambda x, zero: x - zero.to_integer(), 1, 1),
}


# Conversions of types


def _resize(element: Any) -> Callable[[CodeValue], CodeValue]:  # Any: llvmlite has no types
    """Integers of another width; narrower ones wrap."""

    def convert(x: CodeValue) -> CodeValue:
        name = "trunc" if x.element.width > element.width else "sext"
        return x.converted("zext" if x.element.width == 1 else name, element)

    return convert


def _limited(lowest: int, highest: int) -> Callable[[CodeValue], CodeValue]:
    """Integers of any width within bounds."""

    def convert(x: CodeValue) -> CodeValue:
        if x.element.width == 1:
            return x.converted("zext", I32)
        return _resize(I32)(clamp(x, lowest, highest))

    return convert


def _truncated(
    lowest: int, highest: int, element: Any
) -> Callable[[CodeValue], CodeValue]:  # Any: as above
    """Floats without their fraction, saturated; NaN as the highest integer."""

    def convert(x: CodeValue) -> CodeValue:
        wide = x.to_double()
        # No float64 is 2**63 - 1: conversion goes through those below it.
        inside = clamp(wide, float(lowest), math.nextafter(float(highest) + 1, 0))
        is_high = (wide >= float(highest)) | wide.differs(wide)
        integers = choose(is_high, 0.0, inside).converted("fptosi", element)
        return choose(is_high, highest, integers)

    return convert


def _truncated_exactly(lowest: int, highest: int) -> Callable[[CodeValue], CodeValue]:
    """The same to int32 within bounds that float32 holds exactly."""

    def convert(x: CodeValue) -> CodeValue:
        inside = clamp(x, float(lowest), float(highest))
        return choose(x.differs(x), float(highest), inside).converted("fptosi", I32)

    return convert


def _rounded_to_bfloat16(bits: CodeValue) -> CodeValue:
    """Bits of the bfloat16 next to a float32 given by its bits, ties to even; one NaN for all."""
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)).shifted_right(16)
    return choose((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded)


_RANGES = {
    "u8": (0, 255),
    "i8": (-128, 127),
    "u16": (0, (1 << 16) - 1),
    "i16": (-(1 << 15), (1 << 15) - 1),
}
"""Lowest and highest integer by format."""

_CASTS: dict[str, Expression] = {
    **{f"float_to_{name}": Expression(_truncated_exactly(*r), 1) for name, r in _RANGES.items()},
    "float_to_i32": Expression(_truncated(-(1 << 31), (1 << 31) - 1, I32), 1),
    "float_to_i64": Expression(_truncated(-(1 << 63), (1 << 63) - 1, I64), 1),
    **{f"limited_to_{name}": Expression(_limited(*bounds), 1) for name, bounds in _RANGES.items()},
    "half_to_float": Expression(f.half_to_float, 1),
    "float_to_half": Expression(f.float_to_half, 1),
    "converted_half": Expression(f.converted_half, 1),
    "converted_to_half": Expression(f.converted_to_half, 1),
    "to_i32": Expression(_resize(I32), 1),
    "to_i64": Expression(_resize(I64), 1),
    "int_to_float": Expression(lambda x: x.converted("sitofp", F32), 1),
    "bool_to_float": Expression(lambda x: x.converted("uitofp", F32), 1),
    "bfloat16_to_float": Expression(lambda bits: bits << 16, 1),
    "float_to_bfloat16": Expression(_rounded_to_bfloat16, 1),
    "has_magnitude": Expression(lambda x: (x & 0x7FFFFFFF).differs(0), 1),
}


# Quantised elements


def _quantize(
    x: CodeValue, scale: CodeValue, zero: CodeValue, low: CodeValue, high: CodeValue
) -> CodeValue:
    """Stored integers of floats; NaN as 0."""
    steps = x / scale
    return f.to_stored(choose(steps.differs(steps), 0.0, steps), zero, low, high)


def _quantize_even(
    x: CodeValue, scale: CodeValue, zero: CodeValue, low: CodeValue, high: CodeValue
) -> CodeValue:
    """The same with ties to even."""
    steps = x / scale
    return f.to_stored_even(choose(steps.differs(steps), 0.0, steps), zero, low, high)


def _dequantize(x: CodeValue, scale: CodeValue, zero: CodeValue) -> CodeValue:
    """Floats of stored integers."""
    return _to_steps(x, zero) * scale


def _dequantize_wide(x: CodeValue, scale: CodeValue) -> CodeValue:
    """Floats of stored int32 whose zero point is 0."""
    return (x.converted("sitofp", F64) * scale.to_double()).to_single()


def _quantized(function: Callable[[CodeValue, CodeValue], CodeValue]) -> Expression:
    """A function of two real numbers; parameters: zero points and scales, as `compute` has them."""

    def compute(a: CodeValue, b: CodeValue, *numbers: CodeValue) -> CodeValue:
        a_zero, a_scale, b_zero, b_scale, scale, zero, low, high = numbers
        real = function(_to_steps(a, a_zero) * a_scale, _to_steps(b, b_zero) * b_scale)
        return _quantize(real, scale, zero, low, high)

    return Expression(compute, 2, 8)


_QUANTIZED: dict[str, Expression] = {
    "quantize": Expression(_quantize, 1, 4),
    "quantize_even": Expression(_quantize_even, 1, 4),
    "requantize": Expression(f.requantize, 1, 7),
    "dequantize": Expression(_dequantize, 1, 2),
    "dequantize_each": Expression(lambda x, scale, zero: _to_steps(x, zero) * scale, 2, 1),
    "dequantize_wide": Expression(_dequantize_wide, 1, 1),
}

_SINGLE: Mapping[str, Expression] = {
    **{name: Expression(function, 2) for name, function in _FLOAT_BINARY.items()},
    "quantized_squared_difference": _quantized(_squared_difference),
    **{name: Expression(function, 1) for name, function in _FLOAT_UNARY.items()},
    **{f"int_{name}": Expression(function, 2) for name, function in _INTEGER_BINARY.items()},
    **{name: Expression(function, 2) for name, function in _COMPARISONS.items()},
    **_FLOATS,
    **_STORED,
    **_CASTS,
    **_QUANTIZED,
    **{name: Expression(*entry) for name, entry in FIXED.items()},
}


def for_bfloat16(name: str) -> str:
    """An expression whose results are as right as bfloat16 needs them."""
    return ".".join(f"quick_{word}" if word == "sigmoid" else word for word in name.split("."))


_BY_INSTRUCTION = {"half_to_float": "converted_half", "float_to_half": "converted_to_half"}


def for_isa(isa: Isa, name: str) -> str:
    """An expression that gives the same by what instructions there are."""
    if not isa.has_half_conversions:
        return name
    return ".".join(_BY_INSTRUCTION.get(word, word) for word in name.split("."))


def expression_named(name: str) -> Expression:
    """Return the expression of a name in kernels.

    Parameters
    ----------
    name
        Of one function; or several tokens in postfix notation with dots in between: ``x0`` to
        ``x2`` for the inputs, ``p`` for the next parameter, and functions, which take what they
        need from the stack and from the parameters. ``x0.x0.sigmoid.mul`` is ``x sigmoid(x)``.
    """
    tokens = name.split(".")
    if name in _SINGLE:
        return _SINGLE[name]
    num_inputs = 1 + max(int(token[1:]) for token in tokens if token in INPUTS)
    num_parameters = sum(
        1 if token == PARAMETER else _SINGLE[token].num_parameters
        for token in tokens
        if token not in INPUTS
    )

    def compute(*operands: CodeValue) -> CodeValue:
        inputs, parameters = operands[:num_inputs], list(operands[num_inputs:])
        stack: list[CodeValue] = []
        for token in tokens:
            if token in INPUTS:
                stack.append(inputs[int(token[1:])])
            elif token == PARAMETER:
                stack.append(parameters.pop(0))
            else:
                function = _SINGLE[token]
                values = [stack.pop() for _ in range(function.num_inputs)][::-1]
                values += [parameters.pop(0) for _ in range(function.num_parameters)]
                stack.append(function.compute(*values))
        return stack[0]

    return Expression(compute, num_inputs, num_parameters)
