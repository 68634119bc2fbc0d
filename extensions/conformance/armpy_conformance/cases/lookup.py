"""Cases of operations that look up, order or draw elements, and of normalisations."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import (
    HashtableLookup,
    InstanceNormalization,
    LayerNormalization,
    LshProjection,
    LshProjectionType,
    MurmurHash3,
    Normalization,
    RandomMultinomial,
    RmsNormalization,
    TopkV2,
)
from armpy.types import DataLayout, DataType
from armpy_conformance.comparison.seeded_values import (
    anything,
    below,
    distinct,
    exactly,
    few,
    thorough,
)
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, every

_NEVER = float("-inf")


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    table = ((3,), (4,), (4, 2))
    keys = exactly((1, 3, 5, 7))
    yield CaseTemplate(
        "basic", HashtableLookup(), table, every, (exactly((3, 9, 1)), keys, anything)
    )
    yield CaseTemplate("no-lookups", HashtableLookup(), ((0,), *table[1:]), every, (anything,))
    for kind in LshProjectionType:
        yield CaseTemplate(
            kind.name.lower(), LshProjection(kind), ((2, 3), (3, 2), (3,)), _is_whole, (anything,)
        )
    yield from _hashes()
    yield CaseTemplate("seed", MurmurHash3(7), ((3, 70),), every, (thorough,))
    # Only one class of each row can be drawn, by whatever generator.
    logits = exactly(((_NEVER, 0, _NEVER), (1, _NEVER, _NEVER)))
    yield CaseTemplate(
        "certain", RandomMultinomial(4), ((2, 3), (2,)), every, (logits, exactly((1, 2)))
    )
    for classes, seeds in ((7, (1, 2)), (1000, (-5, 2**31 - 1)), (1000, (2**31 - 1, -(2**31)))):
        yield CaseTemplate(
            f"seeds-{classes}-{seeds[0]}",
            RandomMultinomial(50),
            ((3, classes), (2,)),
            every,
            (anything, exactly(seeds)),
        )
    yield CaseTemplate("basic", TopkV2(3), ((2, 6),), every, (distinct,))
    for label, values in (("whole-range", thorough), ("many-ties", few)):
        for last_first in (False, True):
            yield CaseTemplate(
                f"{label}{'-last-first' if last_first else ''}",
                TopkV2(40, larger_index_first=last_first),
                ((3, 70),),
                every,
                (values,),
            )
    yield CaseTemplate("ties", TopkV2(4), ((3, 6),), values=(few,))
    yield CaseTemplate("larger-index", TopkV2(4, larger_index_first=True), ((3, 6),), values=(few,))
    yield CaseTemplate("none", TopkV2(0), ((6,),), values=(below(5),))
    yield from _normalizations()


def _hashes() -> Iterator[CaseTemplate]:
    """LshProjection of items of all lengths that FarmHash treats differently, and their ends.

    Notes
    -----
    Each of 32 seeds gives one bit per length: a hash that is wrong gives half of them.
    """
    for length in (1, 2, 3, 4, 7, 11, 12, 13, 20, 28, 29, 44, 60, 61, 92, 124, 125, 156, 189, 300):
        yield CaseTemplate(
            f"bytes-{length}",
            LshProjection(LshProjectionType.DENSE),
            ((4, 8), (1, length)),
            _bytes_of_float32_seeds,
            (thorough,),
        )
    for kind in LshProjectionType:
        yield CaseTemplate(
            f"{kind.name.lower()}-signatures",
            LshProjection(kind),
            ((3, 5), (4, 3, 2), (4,)),
            lambda types: types[1] in (DataType.FLOAT32, DataType.BOOLEAN),
            (thorough,),
        )
    # Signatures of 32 bits wrap.
    yield CaseTemplate(
        "wide", LshProjection(), ((2, 32), (3, 2)), _bytes_of_float32_seeds, (thorough,)
    )


def _is_whole(types: Types) -> bool:
    """Leave out items of small types: the hash is of bytes, whatever they stand for."""
    item = types[1]
    return item.size_bytes > 1 or not (item.is_bit_pattern or item.is_narrow)


def _bytes_of_float32_seeds(types: Types) -> bool:
    """Select items of bytes that a seed of four bytes goes before."""
    return types[:2] == (DataType.FLOAT32, DataType.UNSIGNED8)


def _normalizations() -> Iterator[CaseTemplate]:
    image, scales = (2, 3, 4, 5), (Scale(1 / 32, 0.1),)
    local = Normalization(2, 0.25, 0.75, 1.5)
    yield CaseTemplate("basic", local, (image,), every, scales=scales)
    for label, operation in {
        "first-axis": Normalization(1, 0.25, 0.5, 2.0, (0,)),
        "two-axes": Normalization(1, 0.25, 0.5, 2.0, (1, 2)),
        "large-radius": Normalization(9, 0.25, 0.5, 2.0),
        "no-neighbours": Normalization(0, 0.25, 0.5, 2.0),
    }.items():
        yield CaseTemplate(label, operation, (image,), scales=scales)
    for label, instance in {
        "basic": InstanceNormalization(2.0, 0.5, 1e-3),
        "nchw": InstanceNormalization(2.0, 0.5, 1e-3, DataLayout.NCHW),
    }.items():
        yield CaseTemplate(label, instance, (image,), every)
    for kind in (LayerNormalization, RmsNormalization):
        vectors = ((5,),) * (len(kind.inputs) - 1)
        yield CaseTemplate("basic", kind(eps=1e-3), (image, *vectors), every)
        yield CaseTemplate("plain", kind(), (image,))
        yield CaseTemplate("long-rows", kind(), ((3, 700), (700,)))
        for label, axes, vector in (
            ("first-axis", (0,), (1, 3, 1, 5)),
            ("all-but-the-first", (1, 2, 3), (3, 4, 5)),
            ("images", (1, 2), (5,)),
            ("channels-first", (2, 3), (3, 1, 1)),
            ("groups", (1, 3), (4, 5)),
            ("negative", (-3, -1), ()),
        ):
            yield CaseTemplate(label, kind(axes, 0.25), (image, vector))
            yield CaseTemplate(f"{label}-plain", kind(axes, 0.25), (image,))
    for label, operation in {
        "whole-range": Normalization(3, 0.01, 0.5, 0.5, (-1,)),
        "whole-range-quarter": Normalization(1, 1e-4, 0.25, 1.0, (1, -1)),
    }.items():
        yield CaseTemplate(label, operation, ((2, 6, 4, 9),), every, (thorough,), scales)
