"""Cases of functions that are not computed of every type: of floats, or of integers, alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from armpy.ops import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    UnaryOperation,
)
from armpy.ops.elementwise import INTEGER_TYPES
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import Values, anything, between, positive, thorough
from armpy_conformance.definitions.functions import TABLES
from armpy_conformance.sampling.case_template import CaseTemplate, of

_FLOATS = (DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64)

OF_FLOATS: Mapping[UnaryOperation, Values] = {
    UnaryOperation.ERF: thorough,
    UnaryOperation.RECIPROCAL: positive,
    UnaryOperation.SIGN: thorough,
    UnaryOperation.TAN: between(-1.5, 1.5),
    UnaryOperation.ASIN: between(-1, 1),
    UnaryOperation.ACOS: between(-1, 1),
    UnaryOperation.ATAN: thorough,
    UnaryOperation.SINH: between(-8, 8),
    UnaryOperation.COSH: between(-8, 8),
    UnaryOperation.ASINH: thorough,
    UnaryOperation.ACOSH: between(1, 50),
    UnaryOperation.ATANH: between(-0.9, 0.9),
}
"""Functions of floats, and numbers that they are given."""

OF_INTEGERS = (UnaryOperation.SIGN, UnaryOperation.BITWISE_NOT)

OF_FLOAT_PAIRS: Mapping[BinaryOperation, tuple[Values, Values]] = {
    BinaryOperation.TRUNC_MOD: (anything, positive),
    BinaryOperation.ATAN2: (anything, positive),
}

OF_INTEGER_PAIRS: Mapping[BinaryOperation, Values] = {
    BinaryOperation.TRUNC_MOD: between(1, 9),
    BinaryOperation.BITWISE_AND: thorough,
    BinaryOperation.BITWISE_OR: thorough,
    BinaryOperation.BITWISE_XOR: thorough,
    BinaryOperation.SHIFT_LEFT: between(0, 9),
    BinaryOperation.SHIFT_RIGHT: between(0, 9),
}
"""Functions of two integers, and the second ones."""

UNARY = (*OF_FLOATS, *OF_INTEGERS)
BINARY = (*OF_FLOAT_PAIRS, *OF_INTEGER_PAIRS)
"""Operations whose lines are here and in no other table."""


def undefined_functions() -> list[str]:
    """List the functions of floats that have no definition, each with the lines to add."""
    of_integers = {*OF_INTEGERS, *OF_INTEGER_PAIRS}
    where = "{} in armpy_conformance/definitions/functions.py"
    inputs = ", and its inputs to {} in armpy_conformance/cases/functions.py"
    second = {UnaryOperation: "OF_FLOATS", BinaryOperation: "OF_FLOAT_PAIRS"}
    return [
        f"{function} has no definition: add it to {where.format(name)}"
        + (inputs.format(second[kind]) if kind in second else "")
        for kind, (name, table) in TABLES.items()
        for function in kind
        if function not in table and function not in of_integers
    ]


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for function, values in OF_FLOATS.items():
        yield from _lines(ElementwiseUnary(function), _FLOATS, (values,))
    for function in OF_INTEGERS:
        yield from _lines(ElementwiseUnary(function), INTEGER_TYPES, (thorough,))
    for pair, both in OF_FLOAT_PAIRS.items():
        yield from _lines(ElementwiseBinary(pair), _FLOATS, both)
    for pair, second in OF_INTEGER_PAIRS.items():
        yield from _lines(ElementwiseBinary(pair), INTEGER_TYPES, (thorough, second))


def _lines(
    operation: ElementwiseUnary | ElementwiseBinary,
    types: Sequence[DataType],
    values: tuple[Values, ...],
) -> Iterator[CaseTemplate]:
    """A whole tensor; one without axes and one without elements, of the usual type."""
    usual = [t for t in types if t in (DataType.FLOAT32, DataType.SIGNED32)]
    shapes: dict[str, tuple[int, ...]] = {"": (16, 17), "-rank-0": (), "-of-nothing": (2, 0, 3)}
    for label, shape in shapes.items():
        yield CaseTemplate(
            f"{operation.operation.name.lower()}{label}",
            operation,
            (shape,) * len(operation.inputs),
            of(*(usual if label else types)),
            values,
        )
