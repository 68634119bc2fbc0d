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
    FusedActivation,
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
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Selection, every, of

BROADCASTS = {
    "same": ((2, 3), (2, 3)),
    "one-element": ((1,), (1,)),
    "scalars": ((), ()),
    "scalar-right": ((2, 3, 5), ()),
    "scalar-left": ((), (3, 5)),
    "row": ((4, 7), (7,)),
    "column": ((4, 7), (4, 1)),
    "both-ways": ((3, 1, 5), (4, 1)),
    "higher-rank-right": ((5,), (2, 3, 1)),
    "rank-5": ((2, 1, 3, 1, 2), (4, 1, 3, 2)),
    "odd-size": ((1, 17, 33), (1, 17, 33)),
    "empty": ((0, 3), (3,)),
}

_FINE, _COARSE = Scale(1 / 32, -0.25), Scale(1 / 16, 0.5)
_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
_NO_INTEGERS = (*_FLOATS, DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)
_EXTREMES = {"lowest": Scale(1 / 16, -1.0), "highest": Scale(1 / 16, 1.0)}

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
        yield replace(
            line,
            label=f"{function.name.lower()}-broadcast",
            shapes=((3, 1, 5), (4, 1)),
            types=of(DataType.FLOAT32),
        )
    add = CaseTemplate(
        "add", ElementwiseBinary(), ((2, 3), (2, 3)), scales=(_FINE,), output=_COARSE
    )
    for label, shapes in BROADCASTS.items():
        yield replace(add, label=f"add-{label}", shapes=shapes)
    yield replace(add, label="add-constant", shapes=((2, 3, 5), (5,)), constants=(1,))
    yield replace(add, label="add-constant-left", shapes=((5,), (2, 3, 5)), constants=(0,))
    for activation in FusedActivation:
        for function in (BinaryOperation.ADD, BinaryOperation.MUL):
            yield replace(
                add,
                label=f"{function.name.lower()}-{activation.name.lower()}",
                operation=ElementwiseBinary(function, activation),
                types=of(*_NO_INTEGERS),
            )
    for name, scale in _EXTREMES.items():
        yield replace(
            add,
            label=f"add-{name}-zero-points",
            types=of(DataType.QASYMM_S8, DataType.QASYMM_U8),
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
        for label, shape in (("", (3, 5)), ("-odd-size", (1, 7, 13)), ("-scalar", ())):
            yield CaseTemplate(
                f"{function.name.lower()}{label}",
                ElementwiseUnary(function),
                (shape,),
                _both(types, of(DataType.FLOAT32)) if label else types,
                (values,),
                (Scale(1 / 32, -0.5),),
                Scale(1 / 16, -0.5),
            )


def _both(first: Selection, other: Selection) -> Selection:
    """Select what two selections have in common."""
    return lambda types: first(types) and other(types)


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
    for label, shapes in BROADCASTS.items():
        yield CaseTemplate(f"less-{label}", Comparison(ComparisonOperation.LESS), shapes)


def _others() -> Iterator[CaseTemplate]:
    """Logic, selection, and slopes for negative elements."""
    for logic in LogicalBinaryOperation:
        for label, shapes in BROADCASTS.items():
            yield CaseTemplate(f"{logic.name.lower()}-{label}", LogicalBinary(logic), shapes, every)
    yield CaseTemplate("same", Select(), ((2, 3, 5), (2, 3, 5), (2, 3, 5)), every)
    for label, shapes3 in {
        "rows": ((3, 1), (3, 5), (3, 5)),
        "scalars": ((4, 3), (), ()),
        "scalar-condition": ((), (2, 3), (2, 3)),
        "all-ways": ((3, 1, 1), (4, 1), (5,)),
    }.items():
        yield CaseTemplate(
            label,
            Select(),
            shapes3,
            lambda types_given: (
                types_given[1] in (DataType.FLOAT32, DataType.QASYMM_S8, DataType.SIGNED32)
            ),
        )
    for label, shapes in {
        "channels": ((1, 3, 3, 4), (1, 1, 4)),
        "same": ((2, 3), (2, 3)),
        "one": ((2, 5), (1,)),
    }.items():
        yield CaseTemplate(
            label,
            Prelu(),
            shapes,
            every,
            (anything, powers),
            (_COARSE, Scale(1 / 64, 0.1)),
            Scale(1 / 8, 0.1),
            constants=(1,),
        )
    yield CaseTemplate(
        "channels-run-time",
        Prelu(),
        ((1, 3, 3, 4), (1, 1, 4)),
        every,
        (anything, powers),
        (_COARSE, Scale(1 / 64, 0.1)),
        Scale(1 / 8, 0.1),
    )
