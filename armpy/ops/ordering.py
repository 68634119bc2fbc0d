"""Operations that order elements by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import require_operand, require_same_elements, unwrap_single
from armpy.ops.elementwise import FLOAT_TYPES, INTEGER_TYPES, QUANTIZED_TYPES
from armpy.ops.operation import NUMBER_TYPES, Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["TopkV2"]

_INDICES = (DataType.SIGNED32, DataType.SIGNED16, DataType.SIGNED64)


@dataclass(frozen=True, slots=True)
class TopkV2(Operation):
    """Find the largest or smallest elements along the last axis.

    Notes
    -----
    input (..., n); k int32 (); values (..., k), in order, quantised like the input; indices int32
    (..., k). NaNs are equal, above all numbers.

    References
    ----------
    TFLite TOPK_V2; NNAPI TOPK_V2 with `larger_index_first`; ONNX TopK with `largest`.
    """

    k: int | None = None
    """Number of elements to find."""
    larger_index_first: bool = False
    """Whether, of equal elements, the one with the larger index comes first."""
    largest: bool = True
    """Whether to find the largest, falling, or the smallest, rising."""

    requantizes: ClassVar[bool] = False
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=tuple(range(1, 9))),
        Operand("k", ranks=(0, 1), becomes="k"),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("values"), Operand("indices"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t, NUMBER_TYPES), (t, _INDICES))
        for t in (DataType.FLOAT64, *FLOAT_TYPES, *INTEGER_TYPES, *QUANTIZED_TYPES)
    )

    def __post_init__(self) -> None:
        unwrap_single(self, "k")

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(..., k), twice."""
        shape = inputs[0].shape or ()
        if self.k is None:
            require_operand(inputs, 1, "k")
        else:
            require(
                self.k >= 0 and (shape[-1] is None or self.k <= shape[-1]),
                "there are not k elements",
                expected=f"0 to {shape[-1]}",
                actual=self.k,
            )
        return ((*shape[:-1], self.k),) * 2

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The input's, and SIGNED32."""
        return inputs[0].data_type, DataType.SIGNED32

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """The values are elements of the input."""
        require_same_elements(inputs[0], outputs[0], "values")
