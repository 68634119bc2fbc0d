"""Decision trees."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operand_checks import bind_sizes
from armpy.ops.operation import Operand, Operation, TypeRule, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["DecisionTrees", "TreeComparison"]


class TreeComparison(enum.IntEnum):
    """Comparison of a feature with a threshold in `DecisionTrees`; numbers are ONNX's."""

    LESS_OR_EQUAL = 0
    LESS = 1
    GREATER_OR_EQUAL = 2
    GREATER = 3
    EQUAL = 4
    NOT_EQUAL = 5


_INDEXES = DataType.SIGNED32


@dataclass(frozen=True, slots=True)
class DecisionTrees(Operation):
    """Find the leaf of each row of features in each tree of an ensemble.

    Notes
    -----
    input (n, f); features int32 (m), each node's column; comparisons uint8 (m), a `TreeComparison`;
    thresholds (m); missing bool (m), whether NaN follows the true branch; if_true and if_false
    int32 (m), the next node, or ``-1 - leaf``; roots int32 (t), of the same kind; output int32 (n,
    t), leaf numbers. Paths that lead nowhere or exceed ``m`` nodes end in leaf 0. ``Gather`` looks
    up values of leaves.

    References
    ----------
    ONNX TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(2,)),
        Operand("features", ranks=(1,)),
        Operand("comparisons", ranks=(1,)),
        Operand("thresholds", ranks=(1,)),
        Operand("missing", ranks=(1,)),
        Operand("if_true", ranks=(1,)),
        Operand("if_false", ranks=(1,)),
        Operand("roots", ranks=(1,)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule(
            (t, _INDEXES, DataType.UNSIGNED8, t, DataType.BOOLEAN, *(_INDEXES,) * 3),
            (_INDEXES,),
        )
        for t in (DataType.FLOAT32, DataType.FLOAT64)
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, t)."""
        sizes = bind_sizes(self, inputs, ("nf", "m", "m", "m", "m", "m", "m", "t"))
        return ((sizes["n"], sizes["t"]),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """SIGNED32."""
        return (_INDEXES,)

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """A few numbers for each row in each tree."""
        return 32 * outputs[0].size_bytes
