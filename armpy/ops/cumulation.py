"""Operations along an axis whose results depend on where elements stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, require_operand, unwrap_single
from armpy.ops.elementwise import INTEGER_TYPES
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.ops.reduction import ReduceOperation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Cumulate", "ReverseSequence"]


@dataclass(frozen=True, slots=True)
class Cumulate(Operation):
    """Cumulative sums or products along an axis.

    Notes
    -----
    input (..., a, ...); axis int32 or int64 () or (1,); output of the input's shape. Floats are
    computed in their own type, halves in float32; integers wrap.

    References
    ----------
    TFLite CUMSUM; ONNX CumSum, CumProd.
    """

    operation: ReduceOperation = ReduceOperation.SUM
    """SUM or PROD."""
    axis: int | None = None
    exclusive: bool = False
    """Whether an element's own number is left out: the first sum is 0, the first product 1."""
    reverse: bool = False
    """Whether to begin at the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axis", ranks=(0, 1), becomes="axis"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT64,
        DataType.FLOAT32,
        DataType.FLOAT16,
        *INTEGER_TYPES,
        also=((DataType.SIGNED32, DataType.SIGNED64),),
    )

    def __post_init__(self) -> None:
        unwrap_single(self, "axis")

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape = inputs[0].shape or ()
        require(
            self.operation in (ReduceOperation.SUM, ReduceOperation.PROD),
            "the operation does not cumulate",
            expected="SUM or PROD",
            actual=self.operation.name,
        )
        if self.axis is None:
            require_operand(inputs, 1, "axis")
        else:
            normalize_axis(self.axis, len(shape))
        return (shape,)


@dataclass(frozen=True, slots=True)
class ReverseSequence(DataMovement):
    """Reverse the first elements of sequences, each up to its own length.

    Notes
    -----
    input (..., b, ..., t, ...); lengths int32 or int64 (b), each in [0, t]; output of the
    input's shape. Elements past a sequence's length stay.

    References
    ----------
    TFLite REVERSE_SEQUENCE; ONNX ReverseSequence.
    """

    sequence_axis: int = 0
    """Axis that is reversed."""
    batch_axis: int = 1
    """Another axis, along which the lengths differ."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=tuple(range(2, 9))),
        Operand("lengths", ranks=(1,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape, lengths = inputs[0].shape or (), inputs[1].shape or ()
        time, batch = (normalize_axis(a, len(shape)) for a in (self.sequence_axis, self.batch_axis))
        require(time != batch, "the axes of sequences and batches are one", actual=time)
        require(
            None in (shape[batch], lengths[0]) or shape[batch] == lengths[0],
            "the number of lengths is wrong",
            expected=str(shape[batch]),
            actual=lengths[0],
        )
        return (shape,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; lengths are integers."""
        DataMovement.validate(self, inputs, outputs)
        require(
            inputs[1].data_type in (DataType.SIGNED32, DataType.SIGNED64),
            "the lengths have the wrong data type",
            expected="SIGNED32 or SIGNED64",
            actual=inputs[1].data_type.name,
        )
