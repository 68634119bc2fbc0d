"""Operations that find elements, so many as there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.elementwise import FLOAT_TYPES, INTEGER_TYPES
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["NonZero", "Unique"]

_NUMBERS = (DataType.FLOAT64, *FLOAT_TYPES, *INTEGER_TYPES, DataType.BOOLEAN)


@dataclass(frozen=True, slots=True)
class NonZero(Operation):
    """Find the positions of elements that are not 0.

    Notes
    -----
    input (...); output int64 (rank, n): n positions in row-major order. A scalar counts as a vector
    of one element.

    References
    ----------
    ONNX NonZero; TFLite WHERE is its transpose.
    """

    has_data_dependent_outputs: ClassVar[bool] = True
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_NUMBERS,), (DataType.SIGNED64,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(rank, n), with n unknown."""
        return ((max(len(inputs[0].shape or ()), 1), None),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """SIGNED64."""
        return (DataType.SIGNED64,)


@dataclass(frozen=True, slots=True)
class Unique(Operation):
    """Find the different elements of a tensor, or slices along an axis.

    Notes
    -----
    input (..., a, ...); values (..., u, ...), or (u) without an axis; indices int64 (u), first
    appearances; inverse_indices int64 (a), or one per element: its position among the values;
    counts int64 (u). NaNs are equal.

    References
    ----------
    ONNX Unique; TFLite UNIQUE, which gives the values in order of appearance and the inverse
    indices; NumPy ``unique``.
    """

    axis: int | None = None
    """Axis of the compared slices; None to compare the flattened tensor's elements."""
    is_sorted: bool = True
    """Whether values rise (slices lexicographically), or are in order of first appearance.
    """

    has_data_dependent_outputs: ClassVar[bool] = True
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("values"),
        Operand("indices"),
        Operand("inverse_indices"),
        Operand("counts"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t,), (t, DataType.SIGNED64)) for t in _NUMBERS
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Unknown numbers of them; as many inverse indices as there are elements, or slices."""
        shape = inputs[0].shape or ()
        if self.axis is None:
            total = inputs[0].num_elements if inputs[0].is_fully_shaped else None
            return (None,), (None,), (total,), (None,)
        axis = normalize_axis(self.axis, len(shape))
        require(
            shape[axis] == 0 or 0 not in shape,
            "slices without elements cannot be compared",
            actual=shape,
        )
        return (*shape[:axis], None, *shape[axis + 1 :]), (None,), (shape[axis],), (None,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The input's, and SIGNED64."""
        return (inputs[0].data_type, *((DataType.SIGNED64,) * 3))
