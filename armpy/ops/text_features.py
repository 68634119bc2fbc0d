"""Features of sequences of words, which are numbers here."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["TermWeighting", "TfIdfVectorizer"]


class TermWeighting(enum.Enum):
    """Weighting of an n-gram's frequency in `TfIdfVectorizer`.

    TF the number; IDF the n-gram's weight, or 0 if it does not occur; TFIDF their product.
    """

    TF = "TF"
    IDF = "IDF"
    TFIDF = "TFIDF"


@dataclass(frozen=True, slots=True)
class TfIdfVectorizer(Operation):
    """Count n-grams: term frequencies, and inverse document frequencies as weights (TF-IDF).

    Notes
    -----
    input (n) or (b, n); output (num_features), or with b in front of it.

    References
    ----------
    ONNX TfIdfVectorizer.
    """

    ngrams: tuple[tuple[int, ...], ...] = ()
    """N-grams that are looked for."""
    indexes: tuple[int, ...] = ()
    """Place where each n-gram is counted."""
    weights: tuple[float, ...] = ()
    """One per place of the output; empty for 1."""
    weighting: TermWeighting = TermWeighting.TF
    num_features: int = 0
    """Places of the output, more than the largest index."""
    max_skips: int = 0
    """Most words between neighbours of an n-gram, whose gaps are equal."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(1, 2)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t,), (DataType.FLOAT32,)) for t in (DataType.SIGNED32, DataType.SIGNED64)
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The batch, and a place for each feature."""
        require(
            self.num_features >= 0,
            "the number of features is negative",
            expected="0 or more",
            actual=self.num_features,
        )
        return ((*(inputs[0].shape or ())[:-1], self.num_features),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """FLOAT32."""
        return (DataType.FLOAT32,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """One index per n-gram, one weight per place."""
        require(
            len(self.indexes) == len(self.ngrams),
            "there is not one index per n-gram",
            expected=str(len(self.ngrams)),
            actual=len(self.indexes),
        )
        require(
            all(0 <= index < self.num_features for index in self.indexes),
            "an index is out of range",
            expected=f"0 to {self.num_features - 1}",
            actual=f"{min(self.indexes, default=0)} to {max(self.indexes, default=0)}",
        )
        require(
            len(self.weights) in (0, self.num_features),
            "the number of weights is wrong",
            expected=f"none or {self.num_features}",
            actual=len(self.weights),
        )
        require(all(self.ngrams), "an n-gram is empty", expected="n-grams of 1 word or more")
        require(
            self.max_skips >= 0,
            "the number of skips is negative",
            expected="0 or more",
            actual=self.max_skips,
        )
