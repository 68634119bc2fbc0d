"""Cases of attention."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import Attention, AttentionScores
from armpy_conformance.comparison.seeded_values import anything, exactly, small
from armpy_conformance.sampling.case_template import CaseTemplate, every

_VALUES = (small, small, anything, anything)
_SHAPES = ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6))


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    shapes = _SHAPES
    for label, operation, mask in (
        ("basic", Attention(), None),
        ("mask", Attention(), (5, 7)),
        ("mask-of-heads", Attention(), (2, 4, 5, 7)),
        ("mask-of-keys", Attention(), (2, 1, 1, 7)),
        ("causal", Attention(is_causal=True), None),
        ("causal-with-past", Attention(is_causal=True, num_past=2), None),
        ("causal-with-mask", Attention(is_causal=True, num_past=2), (2, 1, 5, 7)),
        ("window", Attention(left_window=1, right_window=2, num_past=2), None),
        ("sees-nothing", Attention(right_window=0, left_window=0, num_past=4), None),
        ("cap", Attention(softcap=2.0, scale=0.5), None),
        ("scaled-products", Attention(softcap=2.0, scale=0.5, scales_products=True), None),
    ):
        operands = (*shapes, mask) if mask else shapes
        yield CaseTemplate(label, operation, operands, every, values=_VALUES)
    for scores in AttentionScores:
        if scores is not AttentionScores.NONE:
            capped = Attention(softcap=2.0, is_causal=True, scores=scores)
            yield CaseTemplate(
                f"scores-{scores.name.lower()}", capped, (*shapes, (5, 7)), values=_VALUES
            )
    lengths = (*_VALUES, exactly([5, 7]))
    for label, operation in (
        ("lengths", Attention()),
        ("lengths-causal", Attention(is_causal=True)),
        ("lengths-window", Attention(left_window=2)),
    ):
        yield CaseTemplate(label, operation, (*shapes, None, (2,)), every, values=lengths)
    for label, operands in (
        ("one-head", ((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4))),
        ("one-query", ((2, 4, 1, 8), (2, 4, 33, 8), (2, 4, 33, 8))),
        ("odd-sizes", ((1, 3, 37, 19), (1, 1, 41, 19), (1, 1, 41, 23))),
        ("long", ((1, 2, 130, 32), (1, 2, 300, 32), (1, 2, 300, 32))),
        ("long-causal", ((1, 2, 200, 16), (1, 2, 200, 16), (1, 2, 200, 16))),
    ):
        is_causal = label.endswith("causal")
        yield CaseTemplate(label, Attention(is_causal=is_causal), operands, values=_VALUES)
