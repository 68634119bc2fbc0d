"""NNAPI's elementwise operations against real arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armpy_nnapi import FuseCode, OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    BOOL8,
    BOUNDS,
    FLOATS,
    INT32,
    ITEM_TYPES,
    PER_CHANNEL,
    QUANTIZED,
    SYMMETRIC,
    UNSIGNED,
    Array,
    Draw,
    Expected,
    Instance,
    Tensor,
    check_instances,
    integer,
    is_quantized,
    names,
)

_O = OperationCode


def of_pairs(
    first: Array,
    second: Array,
    function: Callable[[float, float], float],
    dtype: object = np.float64,
) -> Array:
    """A function of each pair of elements, one after the other."""
    first, second = np.broadcast_arrays(first, second)
    results = np.empty(first.shape, dtype)  # type: ignore[call-overload]  # a dtype of either kind
    for index in np.ndindex(first.shape):
        results[index] = function(first[index].item(), second[index].item())
    return np.asarray(results)


def clamped(function: Callable[[float, float], float], code: FuseCode) -> Callable[..., float]:
    """A function with a fused activation after it."""
    low, high = BOUNDS[code]
    return lambda a, b: min(max(function(a, b), low), high)


ARITHMETIC: dict[OperationCode, Callable[[float, float], float]] = {
    _O.ADD: operator.add,
    _O.SUB: operator.sub,
    _O.MUL: operator.mul,
    _O.DIV: operator.truediv,
}
ARITHMETIC_CASES = [
    (code, kind)
    for code in ARITHMETIC
    for kind in (*FLOATS, *QUANTIZED)
    if code is not _O.DIV or kind in FLOATS
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("code", "kind"), ARITHMETIC_CASES, ids=names)
def test_arithmetic(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        first, second = (draw.tensor(kind, shape) for shape in draw.broadcast_shapes())
        if code is _O.DIV:
            away = np.where(second.stored < 0, -0.25, 0.25).astype(second.stored.dtype)
            second = Tensor(kind, second.stored + away)
        fuse = draw.pick(tuple(FuseCode))
        real = of_pairs(first.real, second.real, clamped(ARITHMETIC[code], fuse))
        least = first.scale * second.scale if code is _O.MUL else 0.0
        output = draw.output(kind, real, least)
        return Instance(code, [first, second, integer(fuse)], [output])

    check_instances(make)


def _wrapped(value: int) -> int:
    """The lowest 32 bits of an integer."""
    return (value + 2**31) % 2**32 - 2**31


INTEGER_ARITHMETIC: dict[
    OperationCode, Callable[[Any, Any], int]
] = {  # Any: integers, whatever of_pairs says
    _O.ADD: lambda a, b: _wrapped(a + b),
    _O.SUB: lambda a, b: _wrapped(a - b),
    _O.MUL: lambda a, b: _wrapped(a * b),
    _O.DIV: lambda a, b: a // b if b else 0,
}


@pytest.mark.parametrize("code", INTEGER_ARITHMETIC, ids=names)
def test_arithmetic_of_integers(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        limit = draw.pick((5, 2**31 - 1))
        first, second = (
            draw.tensor(INT32, shape, -limit, limit) for shape in draw.broadcast_shapes()
        )
        values = of_pairs(first.stored, second.stored, INTEGER_ARITHMETIC[code], np.int32)
        return Instance(code, [first, second, integer(0)], [Expected(INT32, values)])

    check_instances(make)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ITEM_TYPES, ids=names)
@pytest.mark.parametrize("code", [_O.MAXIMUM, _O.MINIMUM], ids=names)
def test_extremes(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        first, second = (draw.tensor(kind, shape, -50, 50) for shape in draw.broadcast_shapes())
        choose = max if code is _O.MAXIMUM else min
        if is_quantized(kind):
            output = draw.output(kind, of_pairs(first.real, second.real, choose))
        else:
            dtype = kind.traits.dtype
            output = Expected(kind, of_pairs(first.stored, second.stored, choose, dtype))
        return Instance(code, [first, second], [output])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_pow(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        bases, exponents = draw.broadcast_shapes()
        if draw.chance():
            first, second = draw.tensor(kind, bases, 0.1, 3), draw.tensor(kind, exponents)
        else:
            first = draw.tensor(kind, bases, -3, 3)
            second = Tensor(
                kind, draw.tensor(INT32, exponents, 0, 4).stored.astype(kind.traits.dtype)
            )
        real = of_pairs(first.real, second.real, math.pow)
        return Instance(_O.POW, [first, second], [draw.output(kind, real)])

    check_instances(make)


@pytest.mark.parametrize("kind", [*FLOATS, *QUANTIZED], ids=names)
def test_prelu(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        values, alphas = draw.broadcast_shapes()
        source, alpha = draw.tensor(kind, values), draw.tensor(kind, alphas, -1, 1)
        real = of_pairs(source.real, alpha.real, lambda x, a: x if x >= 0 else x * a)
        least = max(source.scale, source.scale * alpha.scale)
        return Instance(_O.PRELU, [source, alpha], [draw.output(kind, real, least)])

    check_instances(make)


def test_select() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        shape = draw.shape()
        condition = draw.tensor(BOOL8, shape)
        first, second = draw.tensor(kind, shape), draw.tensor(kind, shape)
        if is_quantized(kind):
            values = np.empty(shape)
            for index in np.ndindex(*shape):
                values[index] = (first if condition.stored[index] else second).real[index]
            output = draw.output(kind, values)
        else:
            stored = np.empty(shape, kind.traits.dtype)
            for index in np.ndindex(*shape):
                stored[index] = (first if condition.stored[index] else second).stored[index]
            output = Expected(kind, stored)
        return Instance(_O.SELECT, [condition, first, second], [output])

    check_instances(make)


UNARY: dict[OperationCode, tuple[Callable[[float], float], float, float]] = {
    _O.ABS: (abs, -3, 3),
    _O.NEG: (operator.neg, -3, 3),
    _O.EXP: (math.exp, -4, 4),
    _O.LOG: (math.log, 0.05, 20),
    _O.SIN: (math.sin, -10, 10),
    _O.SQRT: (math.sqrt, 0, 20),
    _O.RSQRT: (lambda x: 1 / math.sqrt(x), 0.05, 20),
    _O.FLOOR: (math.floor, -5, 5),
}
UNARY_CASES = [(code, kind) for code in UNARY for kind in FLOATS]
UNARY_CASES += [(_O.ABS, INT32), (_O.NEG, INT32)]


@pytest.mark.parametrize(("code", "kind"), UNARY_CASES, ids=names)
def test_unary(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        function, low, high = UNARY[code]
        factor = 1e6 if kind is INT32 else 1
        source = draw.tensor(kind, draw.shape(), low * factor, high * factor)
        real = np.array([function(x) for x in source.real.flat], np.float64).reshape(source.shape)
        if kind is INT32:
            return Instance(code, [source], [Expected(INT32, real.astype(np.int32))])
        return Instance(code, [source], [draw.output(kind, real)])

    check_instances(make)


COMPARISONS: dict[OperationCode, Callable[[float, float], bool]] = {
    _O.EQUAL: operator.eq,
    _O.NOT_EQUAL: operator.ne,
    _O.LESS: operator.lt,
    _O.LESS_EQUAL: operator.le,
    _O.GREATER: operator.gt,
    _O.GREATER_EQUAL: operator.ge,
}


@pytest.mark.parametrize("code", COMPARISONS, ids=names)
def test_comparisons(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick((*ITEM_TYPES, BOOL8))
        shapes = draw.broadcast_shapes()
        # Few different values, and scales by which products are exact: equal ones are to occur.
        if is_quantized(kind):
            first, second = (
                draw.tensor(kind, shape, scale=2.0 ** draw.size(-2, -5), zero_point=z)
                for shape, z in zip(shapes, (draw.size(9, 0), draw.size(9, 0)), strict=True)
            )
            first, second = (
                Tensor(kind, (t.stored % 16).astype(t.stored.dtype), t.scale, t.zero_point)
                for t in (first, second)
            )
        else:
            first, second = (draw.tensor(kind, shape) for shape in shapes)
            if kind in FLOATS:
                first, second = (Tensor(kind, np.round(t.stored)) for t in (first, second))
        values = of_pairs(first.real, second.real, COMPARISONS[code], np.bool_)
        return Instance(code, [first, second], [Expected(BOOL8, values)])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.LOGICAL_AND, _O.LOGICAL_OR], ids=names)
def test_logic_of_pairs(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        first, second = (draw.tensor(BOOL8, shape) for shape in draw.broadcast_shapes())
        function: Callable[[float, float], float] = (
            (lambda a, b: a and b) if code is _O.LOGICAL_AND else (lambda a, b: a or b)
        )
        values = of_pairs(first.stored, second.stored, function, np.bool_)
        return Instance(code, [first, second], [Expected(BOOL8, values)])

    check_instances(make)


def test_logical_not() -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(BOOL8, draw.shape())
        values = np.array([not x for x in source.stored.flat], bool).reshape(source.shape)
        return Instance(_O.LOGICAL_NOT, [source], [Expected(BOOL8, values)])

    check_instances(make)


CAST_TYPES = (*FLOATS, INT32, UNSIGNED)


@pytest.mark.parametrize("target", CAST_TYPES, ids=names)
def test_cast(target: OperandCode) -> None:
    def cast(value: float) -> float:
        if target is INT32:
            return math.trunc(value)
        if target is UNSIGNED:
            return math.trunc(min(max(value, 0), 255))
        return value

    def make(draw: Draw) -> Instance:
        kind = draw.pick(CAST_TYPES)
        source = draw.tensor(kind, draw.shape(), -100, 400)
        values = np.array([cast(x.item()) for x in source.stored.flat]).reshape(source.shape)
        exact = values.astype(target.traits.dtype)
        scale = draw.number(0.1, 1) if target is UNSIGNED else 0.0
        return Instance(_O.CAST, [source], [Expected(target, exact, scale)])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
@pytest.mark.parametrize("target", QUANTIZED, ids=names)
def test_quantize(kind: OperandCode, target: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape())
        return Instance(_O.QUANTIZE, [source], [draw.output(target, source.real)])

    check_instances(make)


@pytest.mark.parametrize("target", FLOATS, ids=names)
@pytest.mark.parametrize("kind", [*QUANTIZED, SYMMETRIC, PER_CHANNEL], ids=names)
def test_dequantize(kind: OperandCode, target: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        shape = draw.shape()
        if kind is PER_CHANNEL:
            dim = draw.size(len(shape) - 1, 0)
            scales = tuple(draw.number(0.01, 1) for _ in range(shape[dim]))
            source = Tensor(kind, draw.tensor(SYMMETRIC, shape).stored, 0.0, 0, scales, dim)
        else:
            source = draw.tensor(kind, shape)
        return Instance(_O.DEQUANTIZE, [source], [draw.output(target, source.real)])

    check_instances(make)
