"""Cases of operations that combine or compare all elements along axes."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import anything, distinct, grid, powers
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Selection, every, of

_LOGICAL = (ReduceOperation.ANY, ReduceOperation.ALL)
_ARITHMETIC = (ReduceOperation.SUM, ReduceOperation.PROD, ReduceOperation.MEAN)
_INPUT = (Scale(1 / 32, 0.2),)
_OUTPUTS = {ReduceOperation.SUM: Scale(1 / 4, 0.1), ReduceOperation.PROD: Scale(1 / 2, 0.1)}

_BYTES = (DataType.SIGNED8, DataType.UNSIGNED8)
_COMMON = of(DataType.FLOAT32, DataType.QASYMM_S8)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for operation in ReduceOperation:
        yield from _reductions(operation)
        yield from _kept_dimensions(operation)
    for function in ArgMinMaxFunction:
        name = function.name.lower()
        for output_type in (DataType.SIGNED32, DataType.SIGNED64):
            is_wide = output_type is DataType.SIGNED64
            wide, types = ("-wide", _COMMON) if is_wide else ("", every)
            yield CaseTemplate(
                f"{name}{wide}",
                ArgMinMax(function, 1, output_type),
                ((3, 7, 2),),
                types,
                (distinct,),
            )


def _reductions(operation: ReduceOperation) -> Iterator[CaseTemplate]:
    """Lines of one kind of reduction."""
    name = operation.name.lower()
    values = powers if operation is ReduceOperation.PROD else grid
    output = _OUTPUTS.get(operation)
    scales = _INPUT
    if operation is ReduceOperation.PROD:
        scales, output = (Scale(1 / 64, 0.0),), Scale(1 / 64, 0.1)
    shape = (2, 3, 2, 3) if operation is ReduceOperation.PROD else (2, 3, 4, 5)
    for label, axes in (("two", (1, 2)), ("none", ())):
        yield CaseTemplate(
            f"{name}-{label}",
            Reduce(operation, axes),
            (shape,),
            _types(operation, label == "two"),
            (values,),
            scales,
            output,
        )
    types = _types(operation, False)
    yield CaseTemplate(f"{name}-one", Reduce(operation, (0,)), ((1,),), types, (values,))
    yield CaseTemplate(f"{name}-scalar", Reduce(operation), ((),), types, (values,))
    if operation is not ReduceOperation.PROD:
        yield CaseTemplate(
            f"{name}-odd-size",
            Reduce(operation, (1,)),
            ((3, 67),),
            types,
            (anything,),
            scales,
            output,
        )


def _kept_dimensions(operation: ReduceOperation) -> Iterator[CaseTemplate]:
    """Lines of one kind of reduction that keeps its dimensions, along axes of each kind."""
    values = powers if operation is ReduceOperation.PROD else grid
    types = of(DataType.BOOLEAN if operation in _LOGICAL else DataType.FLOAT32)
    for label, axes in (
        ("none", ()),
        ("first", (0,)),
        ("middle", (1,)),
        ("outer", (0, 3)),
        ("repeated", (1, -3)),
    ):
        yield CaseTemplate(
            f"{operation.name.lower()}-{label}-keep",
            Reduce(operation, axes, keep_dims=True),
            ((2, 3, 2, 3),),
            types,
            (values,),
        )


def _types(operation: ReduceOperation, thorough: bool) -> Selection:
    if operation in _LOGICAL:
        return of(DataType.BOOLEAN)
    if thorough:
        others = (DataType.BOOLEAN,) if operation.selects else (DataType.BOOLEAN, *_BYTES)
        return lambda types: types[0] not in others
    return of(DataType.FLOAT32, DataType.QASYMM_S8)
