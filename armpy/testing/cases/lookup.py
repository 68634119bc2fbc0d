"""Cases of operations that look up, order or draw elements, and of normalisations."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import (
    HashtableLookup,
    InstanceNormalization,
    LshProjection,
    LshProjectionType,
    Normalization,
    RandomMultinomial,
    TopkV2,
)
from armpy.testing.sketch import Scale, Sketch, every
from armpy.testing.values import anything, below, distinct, exactly, few
from armpy.types import DataLayout

_NEVER = float("-inf")


def sketches() -> Iterator[Sketch]:
    """Lines of the table."""
    table = ((3,), (4,), (4, 2))
    keys = exactly((1, 3, 5, 7))
    yield Sketch("basic", HashtableLookup(), table, every, (exactly((3, 9, 1)), keys, anything))
    yield Sketch("no-lookups", HashtableLookup(), ((0,), *table[1:]), every, (anything,))
    for kind in LshProjectionType:
        yield Sketch(
            kind.name.lower(), LshProjection(kind), ((2, 3), (3, 2), (3,)), every, (anything,)
        )
    # Only one class of each row can be drawn, by whatever generator.
    logits = exactly(((_NEVER, 0, _NEVER), (1, _NEVER, _NEVER)))
    yield Sketch("certain", RandomMultinomial(4), ((2, 3), (2,)), every, (logits, exactly((1, 2))))
    yield Sketch("basic", TopkV2(3), ((2, 6),), every, (distinct,))
    yield Sketch("ties", TopkV2(4), ((3, 6),), values=(few,))
    yield Sketch("larger-index", TopkV2(4, larger_index_first=True), ((3, 6),), values=(few,))
    yield Sketch("none", TopkV2(0), ((6,),), values=(below(5),))
    yield from _normalizations()


def _normalizations() -> Iterator[Sketch]:
    """Normalization and InstanceNormalization."""
    image, scales = (2, 3, 4, 5), (Scale(1 / 32, 0.1),)
    local = Normalization(2, 0.25, 0.75, 1.5)
    yield Sketch("basic", local, (image,), every, scales=scales)
    for label, operation in {
        "first-axis": Normalization(1, 0.25, 0.5, 2.0, (0,)),
        "two-axes": Normalization(1, 0.25, 0.5, 2.0, (1, 2)),
        "large-radius": Normalization(9, 0.25, 0.5, 2.0),
        "no-neighbours": Normalization(0, 0.25, 0.5, 2.0),
    }.items():
        yield Sketch(label, operation, (image,), scales=scales)
    for label, instance in {
        "basic": InstanceNormalization(2.0, 0.5, 1e-3),
        "nchw": InstanceNormalization(2.0, 0.5, 1e-3, DataLayout.NCHW),
    }.items():
        yield Sketch(label, instance, (image,), every)
