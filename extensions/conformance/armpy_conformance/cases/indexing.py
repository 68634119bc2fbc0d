"""Cases of operations that read or write where indices say, or go along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from armpy.ops import (
    Cumulate,
    GatherElements,
    NonZero,
    Operation,
    ReduceOperation,
    ReverseSequence,
    ScatterElements,
    ScatterNd,
    ScatterReduction,
    TopkV2,
    Unique,
)
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import Values, below, distinct, exactly, few
from armpy_conformance.sampling.case_template import CaseTemplate, Selection, every, indexed, of

_MOVED = of(
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.QASYMM_S8,
    DataType.QSYMM_S16,
    DataType.SIGNED32,
    DataType.SIGNED64,
    DataType.BOOLEAN,
)
"""Types of every width; moving elements does not depend on more."""

_COMBINED = of(DataType.FLOAT64, DataType.FLOAT32, DataType.SIGNED32, DataType.UNSIGNED8)
_FEW = of(DataType.FLOAT32, DataType.QASYMM_S8)

_PLACES = exactly(((2, 0), (0, 3), (1, 1)))

TABLE: Sequence[tuple[str, Operation, Sequence[tuple[int, ...]], Selection, Values]] = (
    ("basic", GatherElements(0), [(4, 3), (2, 3)], _MOVED, below(4)),
    ("last", GatherElements(-1), [(2, 3, 5), (2, 3, 7)], _FEW, below(5)),
    ("fewer", GatherElements(1), [(4, 5, 3), (2, 4, 2)], _FEW, below(5)),
    ("vector", GatherElements(0), [(5,), (8,)], _FEW, below(5)),
    ("basic", ScatterElements(0), [(4, 3), (1, 3), (1, 3)], _MOVED, below(4)),
    ("last-counts", ScatterElements(-1), [(2, 3), (2, 6), (2, 6)], _FEW, below(3)),
    ("basic", ScatterNd(), [(4, 4), (3, 2), (3,)], _MOVED, _PLACES),
    ("slices", ScatterNd(), [(3, 4, 2), (3, 2), (3, 2)], _FEW, _PLACES),
    ("rows", ScatterNd(), [(5, 3), (2, 2, 1), (2, 2, 3)], _FEW, below(5)),
    *(
        (kind.name.lower(), ScatterNd(kind), [(5, 2), (7, 1), (7, 2)], _COMBINED, below(5))
        for kind in ScatterReduction
        if kind is not ScatterReduction.NONE
    ),
    *(
        (kind.name.lower(), ScatterElements(1, kind), [(2, 3), (2, 5), (2, 5)], _COMBINED, below(3))
        for kind in ScatterReduction
        if kind is not ScatterReduction.NONE
    ),
    ("basic", ReverseSequence(0, 1), [(5, 3), (3,)], _MOVED, exactly((5, 0, 3))),
    ("behind", ReverseSequence(2, 0), [(2, 3, 4, 2), (2,)], _FEW, exactly((4, 3))),
)
"""Operations with indices, in int32, that are filled as the last column says."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for label, operation, shapes, types, indices in TABLE:
        combines = operation.attributes().get("reduction", ScatterReduction.NONE)
        values = distinct if combines is ScatterReduction.NONE else few
        yield CaseTemplate(
            label,
            operation,
            shapes,
            types,
            (values, indices, values),
            infos=indexed,
        )
    for kind in (ReduceOperation.SUM, ReduceOperation.PROD):
        name = kind.name.lower()
        yield CaseTemplate(name, Cumulate(kind, 1), ((2, 5, 3),), every, (few,))
        yield CaseTemplate(
            f"{name}-reverse", Cumulate(kind, -1, reverse=True), ((3, 4),), values=(few,)
        )
        for reverse in (False, True):
            label = f"{name}-exclusive{'-reverse' if reverse else ''}"
            yield CaseTemplate(label, Cumulate(kind, 0, True, reverse), ((4, 3),), values=(few,))
    yield CaseTemplate("basic", NonZero(), ((3, 4),), every, (few,))
    yield CaseTemplate("basic", Unique(), ((2, 7),), every, (few,))
    yield CaseTemplate("in-order", Unique(is_sorted=False), ((9,),), values=(few,))
    yield CaseTemplate("slices", Unique(1), ((2, 9),), values=(few,))
    yield CaseTemplate("smallest", TopkV2(3, largest=False), ((2, 6),), every, (distinct,))
    yield CaseTemplate("smallest-ties", TopkV2(4, largest=False), ((3, 6),), values=(few,))
    yield CaseTemplate("smallest-last", TopkV2(4, True, largest=False), ((3, 6),), values=(few,))
