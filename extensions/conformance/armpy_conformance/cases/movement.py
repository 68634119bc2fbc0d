"""Cases of operations that move, join, cut and make elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

from armpy.ops import (
    BroadcastTo,
    ChannelShuffle,
    Concat,
    ExpandDims,
    Fill,
    Gather,
    GatherNd,
    OneHot,
    Operation,
    Pad,
    Range,
    Rank,
    Reshape,
    ReverseV2,
    Shape,
    Slice,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import anything, below, distinct, exactly
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, every, indexed, of

_BYTES = of(DataType.QASYMM_S8, DataType.QASYMM_U8)

TABLE: tuple[tuple[str, Operation, Sequence[tuple[int, ...]]], ...] = (
    ("basic", Reshape((4, -1)), [(2, 3, 4)]),
    ("scalar-to-vector", Reshape((1,)), [()]),
    ("empty", Reshape((3, 0)), [(0, 2)]),
    ("basic", ExpandDims(1), [(2, 3)]),
    ("basic", Squeeze(), [(1, 3, 1, 2)]),
    ("basic", Transpose((1, 0)), [(3, 5)]),
    ("basic", Tile((2, 3)), [(3, 2)]),
    ("basic", BroadcastTo((4, 3, 5)), [(3, 1)]),
    ("basic", ChannelShuffle(3), [(2, 6)]),
    ("basic", ReverseV2((0,)), [(3, 5)]),
    ("basic", Slice((1, 0), (2, 3)), [(4, 5)]),
    ("basic", StridedSlice((0, 1), (4, 5), (2, 2)), [(4, 5)]),
    ("basic", Splitter(2, 1), [(3, 4)]),
    ("basic", Unstack(3, 0), [(3, 4)]),
    ("basic", Concat(1), [(2, 3), (2, 4)]),
    ("with-empty", Concat(0), [(2, 3), (0, 3)]),
    ("basic", Stack(0), [(2, 3), (2, 3)]),
    ("scalars", Stack(0), [(), (), ()]),
)
"""Operations that take any data type, each first with many types."""

_WITH_EVERY_TYPE = ("Concat", "Reshape", "Slice", "Transpose")
_WIDTHS = of(
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
    DataType.SIGNED32,
    DataType.SIGNED64,
    DataType.BOOLEAN,
)
"""Types of every width; moving elements does not depend on more."""

INDEXED: tuple[tuple[str, Operation, Sequence[tuple[int, ...]], int], ...] = (
    ("basic", Gather(0), [(5, 3), (4,)], 5),
    ("axis_1", Gather(1), [(2, 5, 3), (4,)], 5),
    ("last", Gather(-1), [(2, 3, 5), (2, 2)], 5),
    ("batch", Gather(1, 1), [(3, 5, 2), (3, 4)], 5),
    ("one-index", Gather(0), [(5, 3), ()], 5),
    ("basic", GatherNd(), [(4, 4, 3), (5, 2)], 4),
    ("elements", GatherNd(), [(4, 4), (2, 3, 2)], 4),
    ("rows", GatherNd(), [(4, 3), (5, 1)], 4),
)
"""Look-ups, with the number that indices stay below."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    seen: set[str] = set()
    for label, operation, shapes in TABLE:
        types = of(DataType.FLOAT32, DataType.QASYMM_S8)
        if operation.name not in seen:
            types = every if operation.name in _WITH_EVERY_TYPE else _WIDTHS
        seen.add(operation.name)
        yield CaseTemplate(label, operation, shapes, types, (distinct,))
    yield CaseTemplate(
        "requantizing",
        Concat(-1),
        ((3, 4), (3, 2)),
        of(DataType.QASYMM_U8, DataType.QASYMM_S8),
        scales=(Scale(1 / 32, 0.3), Scale(1 / 16, -0.5)),
        output=Scale(1 / 16, 0.0),
    )
    yield from _joins()
    yield from _padding()
    yield from _lookups()
    yield from _generation()


def _joins() -> Iterator[CaseTemplate]:
    """Concat of three along each axis of each rank."""
    types, values = of(DataType.FLOAT32), (distinct,)
    for rank in range(1, 6):
        parts = ((2, 3, 1, 2, 3)[:rank],) * 3
        for axis in range(rank):
            yield CaseTemplate(f"axis-{axis}-of-rank-{rank}", Concat(axis), parts, types, values)


def _padding() -> Iterator[CaseTemplate]:
    """Pad with zeros of different kinds."""
    values = (distinct,)
    around = ((1, 0), (2, 1))
    yield CaseTemplate("basic", Pad(around), ((3, 4),), _WIDTHS, values)
    yield CaseTemplate(
        "value-operand",
        Pad(around),
        ((3, 4), ()),
        of(DataType.FLOAT32, DataType.QASYMM_S8, DataType.SIGNED32),
        (distinct, exactly(3)),
        constants=(1,),
    )
    for where, side in ((-1.0, "lowest"), (1.0, "highest")):
        scales = (Scale(1 / 16, where),)
        yield CaseTemplate(f"{side}-zero-point", Pad(around), ((3, 4),), _BYTES, values, scales)


def _lookups() -> Iterator[CaseTemplate]:
    """Gather and GatherNd over types of elements and types of indices."""
    seen: set[str] = set()
    for label, operation, shapes, limit in INDEXED:
        first = operation.name not in seen
        seen.add(operation.name)
        for index_type in (DataType.SIGNED32, DataType.SIGNED64, DataType.SIGNED16):
            if not first and index_type is not DataType.SIGNED32:
                continue
            wide = "" if index_type is DataType.SIGNED32 else f"-{index_type.name.lower()}"
            yield CaseTemplate(
                f"{label}{wide}",
                operation,
                shapes,
                _WIDTHS if first and not wide else of(DataType.FLOAT32, DataType.QASYMM_S8),
                (distinct, below(limit)),
                infos=partial(indexed, index_type=index_type),
            )

    for rank, axis in itertools.product((2, 3, 4, 5), range(5)):
        if axis >= rank:
            continue
        shape = (2, 3, 4, 3, 2)[:rank]
        yield CaseTemplate(
            f"matrix-along-{axis}-of-rank-{rank}",
            Gather(axis),
            (shape, (2, 3)),
            of(DataType.FLOAT32),
            (distinct, below(shape[axis])),
            infos=indexed,
        )


def _generation() -> Iterator[CaseTemplate]:
    """Operations that make elements; the core knows the answers of most without a backend."""
    yield CaseTemplate("basic", Fill((2, 3)), ((),), _WIDTHS)
    yield CaseTemplate("basic", Rank(), ((2, 3, 4),), every)
    yield CaseTemplate("scalar", Rank(), ((),))
    for data_type, types in ((DataType.SIGNED32, every), (DataType.SIGNED64, of(DataType.FLOAT32))):
        yield CaseTemplate(f"to-{data_type.name.lower()}", Shape(data_type), ((2, 3, 4),), types)
    for data_type in (DataType.FLOAT32, DataType.SIGNED32, DataType.SIGNED64):
        for label, numbers in {"up": (1, 10, 2), "down": (5, 0, -1), "empty": (3, 3, 1)}.items():
            yield CaseTemplate(label, Range(*numbers, data_type), (), of(data_type))
    yield CaseTemplate("basic", OneHot(4), ((5,), (), ()), every, (below(6), anything, anything))
