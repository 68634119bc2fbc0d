"""Attention: what queries find at the keys that are like them."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.ops.shapes import MAX_STEP, broadcast_shapes
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Attention", "AttentionScores"]

_LENGTHS = (DataType.SIGNED64, DataType.SIGNED32)


class AttentionScores(enum.Enum):
    """Second output of `Attention`: which of its scores it returns.

    NONE nothing; PRODUCTS the scaled products; CAPPED those with the cap; MASKED those with cap
    and mask; PROBABILITIES the softmax.
    """

    NONE = -1
    PRODUCTS = 0
    CAPPED = 1
    MASKED = 2
    PROBABILITIES = 3


@dataclass(frozen=True, slots=True)
class Attention(Operation):
    """Scaled dot-product attention of one or several heads.

    Notes
    -----
    query (b, h, s, d); key (b, g, t, d); value (b, g, t, e): each head of keys serves h / g
    neighbouring heads of queries; mask broadcasts to (b, h, s, t): a summand of the products, or
    whether a query sees a key; key_lengths (b): numbers of keys, of which the last s are the
    queries'; output (b, h, s, e); scores (b, h, s, t). ``softmax(scale query @ key.T + mask) @
    value``. Keys hidden by the mask (false, -infinity), causality, windows or lengths have the
    score -infinity; neither they nor their values take part, even if NaN or infinite. A query that
    sees nothing gives 0. Computed in float32, FLOAT64 in itself.

    References
    ----------
    ONNX Attention; Vaswani et al., "Attention Is All You Need", 2017; Ainslie et al., "GQA:
    Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023.
    """

    scale: float = 0.0
    """Factor of the products; 0 for one over the root of the head size."""
    softcap: float = 0.0
    """Limit that products approach: ``softcap tanh(product / softcap)``; 0 for none."""
    is_causal: bool = False
    """Whether keys after a query's position are hidden."""
    left_window: int = -1
    right_window: int = -1
    """`left_window` and `right_window`: numbers of keys that a query sees before and after its
    position; -1 for all.
    """
    num_past: int = 0
    """Position of the first query, unless `key_lengths` gives it."""
    scores: AttentionScores = AttentionScores.NONE
    """Content of a second output."""
    scales_products: bool = False
    """Whether `scale` multiplies the products, not the queries (where scales below 1 avoid
    overflow).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("query", ranks=(4,)),
        Operand("key", ranks=(4,)),
        Operand("value", ranks=(4,)),
        Operand("mask", optional=True),
        Operand("key_lengths", optional=True, ranks=(1,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output"), Operand("scores", optional=True))
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t, t, t, (t, DataType.BOOLEAN), _LENGTHS), (t, t))
        for t in (DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64)
    )

    @property
    def num_outputs(self) -> int:
        """One more if scores are returned."""
        return 1 if self.scores is AttentionScores.NONE else 2

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, h, s, e) and (b, h, s, t)."""
        query, key, value = ((info.shape or ()) for info in inputs[:3])
        (batch, heads, queries, _), (_, groups, keys, _) = query, key
        for axis, name in ((0, "batches"), (3, "head sizes")):
            _require_equal(query[axis], key[axis], f"{name} of query and key")
        for axis, name in ((0, "batches"), (1, "heads"), (2, "lengths")):
            _require_equal(key[axis], value[axis], f"{name} of key and value")
        require(
            heads is None or groups is None or (groups > 0 and heads % groups == 0),
            "the heads of queries do not split among those of keys",
            expected=f"a multiple of {groups} heads",
            actual=heads,
        )
        scores = (batch, heads, queries, keys)
        mask = inputs[3] if len(inputs) > 3 else None
        if mask is not None:
            together = broadcast_shapes(mask.shape or (), scores) or ()
            require(
                len(together) == 4
                and all(
                    of is None or to is None or of == to
                    for of, to in zip(scores, together, strict=True)
                ),
                "the mask does not broadcast to the scores",
                expected=str(scores),
                actual=mask.shape,
            )
        lengths = inputs[4] if len(inputs) > 4 else None
        if lengths is not None:
            _require_equal(batch, (lengths.shape or ())[0], "batches of query and key_lengths")
        outputs = ((batch, heads, queries, value[3]), scores)
        return outputs[: self.num_outputs]

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Numbers that make sense."""
        for name in ("scale", "softcap"):
            number = getattr(self, name)
            require(
                number >= 0 and math.isfinite(number),
                f"{name} is negative or not finite",
                expected="a finite number of 0 or more",
                actual=f"{number:g}",
            )
        for name, least in (("left_window", -1), ("right_window", -1), ("num_past", 0)):
            number = getattr(self, name)
            require(
                least <= number <= MAX_STEP,
                f"{name} is out of range",
                expected=f"{least} to {MAX_STEP}",
                actual=number,
            )

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """The scores, as float32 at least, twice."""
        query, key = inputs[0], inputs[1]
        if query is None or key is None:
            return 0
        batch, heads, queries, _ = query.known_shape
        size = max(4, query.data_type.size_bytes)
        return 2 * size * batch * heads * queries * key.known_shape[2]


def _require_equal(dim: Dimension, other: Dimension, noun: str) -> None:
    """Check that two dimensions do not differ."""
    require(
        dim is None or other is None or dim == other,
        f"the {noun} differ",
        expected=str(dim),
        actual=other,
    )
