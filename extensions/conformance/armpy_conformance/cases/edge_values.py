"""Numbers at the edges of functions and types: powers of two, ends of ranges, equal operands.

CpuRef says the results. Numbers are those for which a right implementation has no choice: of
angles, remainders and powers, ones that are not so large that only few digits are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    Operation,
    Reduce,
    ReduceOperation,
    TopkV2,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import HOSTILE, Reals, Values, stored
from armpy_conformance.sampling.case_template import CaseTemplate, of

_FLOATS = of(DataType.FLOAT32, DataType.FLOAT16)
_UNSIGNED = of(DataType.UNSIGNED32)

_MOST_ANGLE = 2.0**17
"""Angles that are not larger keep some digits in float32."""

_MOST = 2e38
"""Larger numbers than that have infinite sums with themselves."""

_MOST_ACTIVATED = 2.0**60
"""Products of such numbers are finite, whichever are multiplied first."""

_OF_ANGLES = (UnaryOperation.SIN, UnaryOperation.COS, UnaryOperation.TAN)
_OF_INTEGERS = tuple(
    function
    for function in BinaryOperation
    if function not in (BinaryOperation.POWER, BinaryOperation.ATAN2)
)
_OF_TWO = (ActivationFunction.TANH, ActivationFunction.LINEAR)
"""Functions whose second parameter may not be 0, or is an added term."""

_NEAR_ONE = (UnaryOperation.ASIN, UnaryOperation.ACOS, UnaryOperation.ATANH, UnaryOperation.ACOSH)
"""Functions whose ends, 1 and -1, are those of other tables."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _functions()
    yield from _pairs()
    yield from _conversions()
    yield from _unsigned()


def _limits(info: TensorInfo) -> np.finfo[Any]:
    """The limits of a type of floats."""
    return np.finfo(info.data_type.dtype)


def _numbers(info: TensorInfo) -> Reals:
    """Powers of two with either sign, reciprocals, halves, and ends of the type and of others."""
    limits = _limits(info)
    least = int(np.log2(float(limits.smallest_subnormal)))
    powers = 2.0 ** np.arange(least, limits.maxexp)
    parts = 1 / np.arange(3.0, 12)
    ends = (float(limits.tiny), float(limits.tiny) * (1 - 2.0**-8), 88.5, 11.0)
    positive = np.concatenate([powers, parts, ends, [65504.0, 65519.0, 65520.0, 256.5]])
    hostile = HOSTILE[(np.abs(HOSTILE) < _MOST) | ~np.isfinite(HOSTILE)]
    return np.concatenate([positive, -positive, hostile])


def _some(select: Callable[[Reals], Reals]) -> Values:
    """The numbers of a selection, the first ones again where there are fewer than elements."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        numbers = stored(_numbers(info), info)
        with np.errstate(all="ignore"):
            chosen = numbers[np.asarray(select(numbers.astype(np.float64)), np.bool_)]
        return np.resize(chosen, info.known_shape)

    return make


def _any(x: Reals) -> Reals:
    return np.ones(x.shape, np.bool_)


def _functions() -> Iterator[CaseTemplate]:
    """Functions of one number."""
    for function in UnaryOperation:
        if function in (UnaryOperation.LOGICAL_NOT, UnaryOperation.BITWISE_NOT, *_NEAR_ONE):
            continue
        select = (lambda x: abs(x) <= _MOST_ANGLE) if function in _OF_ANGLES else _any
        yield CaseTemplate(
            f"{function.name.lower()}-edges",
            ElementwiseUnary(function),
            ((680,),),
            _FLOATS,
            (_some(select),),
        )
    for activation in ActivationFunction:
        yield CaseTemplate(
            f"{activation.name.lower()}-edges",
            Activation(activation, 0.5, 1.0 if activation in _OF_TWO else 0.0),
            ((680,),),
            _FLOATS,
            (_some(lambda x: (abs(x) <= _MOST_ACTIVATED) | ~np.isfinite(x)),),
        )


def _both(pairs: Callable[[TensorInfo], Sequence[tuple[float, float]]]) -> tuple[Values, Values]:
    """Makers of the left and of the right numbers of pairs, again and again."""

    def side(index: int) -> Values:
        def make(rng: np.random.Generator, info: TensorInfo) -> Array:
            numbers = np.array([pair[index] for pair in pairs(info)])
            return np.resize(stored(numbers, info), info.known_shape)

        return make

    return side(0), side(1)


def _ends(info: TensorInfo) -> tuple[float, float, float]:
    """The largest number, the smallest normal one, and the smallest one."""
    limits = _limits(info)
    return float(limits.max), float(limits.tiny), float(limits.smallest_subnormal)


def _arithmetic(info: TensorInfo) -> Sequence[tuple[float, float]]:
    """Equal numbers, reciprocals, and numbers whose sum, product or quotient leaves the type."""
    most, tiny, least = _ends(info)
    half = most / 2
    powers = [2.0**n for n in range(int(np.log2(tiny)), int(np.log2(half)))]
    return [
        *((n, n) for n in range(1, 101)),
        *((1, n) for n in range(1, 101)),
        *((n, 2 * n) for n in range(1, 50)),
        *((p, p) for p in powers),
        *((1, p) for p in powers),
        *((x, y) for x in (most, tiny, 0.75 * tiny, least) for y in (most, half, 2.0, 0.5)),
        *((x, -x) for x in (most, half, tiny, least)),
        *((x, x) for x in (most, half, tiny, least, 3 * least)),
        *((65504.0, y) for y in (15.0, 16.0, 2.0, 65504.0)),
        (256.0, 256.0),
        (255.9, 256.0),
    ]


def _of_remainders(info: TensorInfo) -> Sequence[tuple[float, float]]:
    """Whole quotients, those beside them, and equal numbers."""
    most, tiny, _ = _ends(info)
    signs = ((1, 1), (-1, 1), (1, -1), (-1, -1))
    pairs = [(n, n) for n in (*range(1, 101), most, tiny)]
    pairs += [(m * n, n) for n in range(1, 12) for m in range(2, 12)]
    pairs += [(m * n + 1, n) for n in range(2, 9) for m in range(2, 9)]
    return [(a * x, b * y) for x, y in pairs for a, b in signs]


def _of_powers(info: TensorInfo) -> Sequence[tuple[float, float]]:
    """Whole powers of whole numbers, of 0 and of infinity."""
    limits = _limits(info)
    return [
        *((2.0, float(n)) for n in range(limits.minexp, limits.maxexp + 2)),
        *((float(x), float(n)) for x in (-3, -2, -1, 0, 1, 3) for n in (0, 1, 2, 3)),
        *((x, n) for x in (np.inf, -np.inf) for n in (0.0, 1.0, 2.0, 3.0, -1.0, -2.0)),
        *((0.0, n) for n in (-1.0, -2.0, 0.5)),
        *((4.0, n) for n in (0.5, -0.5, 1.5)),
    ]


def _pairs() -> Iterator[CaseTemplate]:
    """Functions of two numbers."""
    functions = BinaryOperation
    tables: Mapping[
        Callable[[TensorInfo], Sequence[tuple[float, float]]], Sequence[BinaryOperation]
    ] = {
        _arithmetic: (
            *(functions.ADD, functions.SUB, functions.MUL, functions.DIV),
            *(functions.MAXIMUM, functions.MINIMUM, functions.SQUARED_DIFFERENCE),
        ),
        _of_remainders: (functions.FLOOR_DIV, functions.FLOOR_MOD, functions.TRUNC_MOD),
        _of_powers: (functions.POWER,),
    }
    for pairs, group in tables.items():
        for function in group:
            yield CaseTemplate(
                f"{function.name.lower()}-edges",
                ElementwiseBinary(function),
                ((1000,),) * 2,
                _FLOATS,
                _both(pairs),
            )


def _conversions() -> Iterator[CaseTemplate]:
    """Conversions to floats of fewer bits, and of large integers."""
    narrow = (DataType.FLOAT16, DataType.FLOAT32)
    for number, wide in enumerate((DataType.FLOAT32, DataType.FLOAT64), 1):
        yield CaseTemplate(
            "edges",
            Cast(),
            ((680,),),
            of(wide),
            (_some(_any),),
            output_types=narrow[:number],
        )
    targets = (DataType.FLOAT32, DataType.FLOAT64, DataType.SIGNED64, DataType.UNSIGNED8)
    large = (_integer_ends,)
    yield CaseTemplate("above-2-31", Cast(), ((40,),), _UNSIGNED, large, output_types=targets)


def _integer_ends(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Integers on both sides of 2^31 and at the ends of 32 bits, none of which is 0."""
    middle = 2**31
    ends = [1, 2, 2**24 + 1, middle - 1, middle, middle + 1, middle + 2**24 + 1, 2 * middle - 1]
    return rng.choice(np.array(ends, np.uint32), info.known_shape).astype(info.data_type.dtype)


def _shifts(rng: np.random.Generator, info: TensorInfo) -> Array:
    return rng.integers(0, 32, info.known_shape).astype(info.data_type.dtype)


def _unsigned() -> Iterator[CaseTemplate]:
    """Integers without a sign that are negative if they are taken for ones with a sign."""
    ends: tuple[Values, ...] = (_integer_ends,)
    pairs: Sequence[tuple[Operation, str]] = (
        *((ElementwiseBinary(function), function.name) for function in _OF_INTEGERS),
        *((Comparison(comparison), comparison.name) for comparison in ComparisonOperation),
    )
    for operation, name in pairs:
        is_shift = name.startswith("SHIFT")
        values = (_integer_ends, _shifts) if is_shift else ends
        types = of(DataType.UNSIGNED32, DataType.SIGNED32) if is_shift else _UNSIGNED
        label = f"{name.lower()}-above-2-31"
        yield CaseTemplate(label, operation, ((8, 20),) * 2, types, values)
    singles: Sequence[tuple[Operation, str]] = (
        *((Reduce(ReduceOperation[name], (1,)), name) for name in ("MAX", "MIN", "SUM")),
        *((ArgMinMax(function, 1), function.name) for function in ArgMinMaxFunction),
        *((TopkV2(3, largest=largest), f"largest-{largest}") for largest in (False, True)),
    )
    for operation, name in singles:
        yield CaseTemplate(f"{name.lower()}-above-2-31", operation, ((8, 20),), _UNSIGNED, ends)
