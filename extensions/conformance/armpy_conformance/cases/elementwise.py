"""Cases of elementwise operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Prelu,
    Select,
    UnaryOperation,
)
from armpy.types import DataType
from armpy_conformance.cases import functions
from armpy_conformance.comparison.seeded_values import (
    Values,
    anything,
    between,
    far,
    few,
    positive,
    powers,
)
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, every, of

_FINE, _COARSE = Scale(1 / 32, -0.25), Scale(1 / 16, 0.5)
_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
_NO_INTEGERS = (*_FLOATS, DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)

_BINARY_VALUES: dict[BinaryOperation, tuple[Values, ...]] = {
    BinaryOperation.DIV: (far, positive),
    BinaryOperation.FLOOR_DIV: (anything, positive),
    BinaryOperation.FLOOR_MOD: (anything, positive),
    BinaryOperation.POWER: (positive, between(0, 3)),
}
_BINARY_OUTPUT: dict[BinaryOperation, Scale] = {
    BinaryOperation.ADD: Scale(3 / 32, 0.1),
    BinaryOperation.SUB: Scale(3 / 32, -0.1),
    BinaryOperation.MUL: Scale(1 / 3, 0.1),
    BinaryOperation.SQUARED_DIFFERENCE: Scale(0.3, -1.0),
}
_UNARY_VALUES: dict[UnaryOperation, Values] = {
    UnaryOperation.SQRT: positive,
    UnaryOperation.RSQRT: positive,
    UnaryOperation.LOG: positive,
}
_BINARY_COMMON = {
    BinaryOperation.FLOOR_DIV: of(DataType.FLOAT32, DataType.SIGNED32),
    BinaryOperation.FLOOR_MOD: of(DataType.FLOAT32, DataType.SIGNED32),
    BinaryOperation.POWER: of(DataType.FLOAT32, DataType.SIGNED32),
}


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _binary()
    yield from _unary()
    yield from _comparisons()
    yield from _others()


def _binary() -> Iterator[CaseTemplate]:
    """Arithmetic on two tensors."""
    for function in (f for f in BinaryOperation if f not in functions.BINARY):
        values = _BINARY_VALUES.get(function, (anything,))
        line = CaseTemplate(
            function.name.lower(),
            ElementwiseBinary(function),
            ((2, 3, 5), (2, 3, 5)),
            every if function is BinaryOperation.ADD else of(*_NO_INTEGERS, DataType.SIGNED32),
            values,
            (_FINE, _COARSE),
            _BINARY_OUTPUT.get(function, Scale(1 / 8, 0.1)),
        )
        if function in _BINARY_COMMON:
            yield replace(line, types=_BINARY_COMMON[function])
        else:
            yield line
    for name, where in (("lowest", -1.0), ("highest", 1.0)):
        scale = Scale(1 / 16, where)
        yield CaseTemplate(
            f"add-{name}-zero-points",
            ElementwiseBinary(),
            ((2, 3), (2, 3)),
            of(DataType.QASYMM_U8),
            scales=(scale,),
            output=scale,
        )
    for function in (BinaryOperation.ADD, BinaryOperation.SUB):
        yield CaseTemplate(
            f"{function.name.lower()}-power-of-two",
            ElementwiseBinary(function, power_of_two_scales=True),
            ((3, 4), (3, 4)),
            of(DataType.QSYMM_S16),
            scales=(Scale(1 / 16), Scale(1 / 8)),
            output=Scale(1 / 8),
        )


def _unary() -> Iterator[CaseTemplate]:
    """Functions of one element."""
    for function in (f for f in UnaryOperation if f not in functions.UNARY):
        values = _UNARY_VALUES.get(function, anything)
        types = of(*_NO_INTEGERS)
        if function is UnaryOperation.LOGICAL_NOT:
            types = of(DataType.BOOLEAN)
        elif function in (UnaryOperation.ABS, UnaryOperation.NEG, UnaryOperation.SQUARE):
            types = lambda types_given: types_given[0] is not DataType.BOOLEAN  # noqa: E731
        yield CaseTemplate(
            function.name.lower(),
            ElementwiseUnary(function),
            ((3, 5),),
            types,
            (values,),
            (Scale(1 / 32, -0.5),),
            Scale(1 / 16, -0.5),
        )


def _comparisons() -> Iterator[CaseTemplate]:
    """Comparisons; scales are powers of two, so that rescaling does not decide."""
    scales = (Scale(1 / 32, -0.25), Scale(1 / 16, 0.5))
    for function in ComparisonOperation:
        line = CaseTemplate(
            function.name.lower(),
            Comparison(function),
            ((3, 7), (3, 7)),
            every
            if function is ComparisonOperation.EQUAL
            else of(*_NO_INTEGERS, DataType.SIGNED32),
            (few,),
            scales[:1],
        )
        yield line
        yield replace(
            line, label=f"{function.name.lower()}-scales", scales=scales, values=(anything,)
        )


def _others() -> Iterator[CaseTemplate]:
    """Logic, selection, and slopes for negative elements."""
    for logic in LogicalBinaryOperation:
        yield CaseTemplate(logic.name.lower(), LogicalBinary(logic), ((2, 3), (2, 3)), every)
    yield CaseTemplate("same", Select(), ((2, 3, 5), (2, 3, 5), (2, 3, 5)), every)
    yield CaseTemplate(
        "channels",
        Prelu(),
        ((1, 3, 3, 4), (1, 1, 4)),
        every,
        (anything, powers),
        (_COARSE, Scale(1 / 64, 0.1)),
        Scale(1 / 8, 0.1),
        constants=(1,),
    )
