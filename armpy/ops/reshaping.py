"""Operations that give the same elements another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, require_operand, shape_of_operand, unwrap_single
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import normalize_axes, normalize_axis, product
from armpy.tensor import Shape, TensorInfo, format_shape

__all__ = ["ExpandDims", "Reshape", "Squeeze"]


@dataclass(frozen=True, slots=True)
class Reshape(DataMovement):
    """Give a tensor another shape.

    Notes
    -----
    input (...); shape int32 (rank of the output); output as `target_shape`.

    References
    ----------
    Arm NN Reshape; NNAPI and TFLite RESHAPE.
    """

    target_shape: tuple[int, ...] | None = None
    """One entry may be -1: it follows from the others."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("shape", ranks=(1,), becomes="target_shape"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The target shape with its -1 worked out."""
        if self.target_shape is None:
            return (shape_of_operand(inputs, 1, "target_shape"),)
        target = self.target_shape
        require(
            all(dim >= -1 for dim in target),
            "a size of the target shape is negative",
            expected="sizes >= 0 and at most one -1",
            actual=str(target),
        )
        require(
            target.count(-1) <= 1,
            "the target shape leaves several sizes open",
            expected="at most one -1",
            actual=str(target),
        )
        count = product(inputs[0].shape or ())
        if count is None:
            return (tuple(None if dim == -1 else dim for dim in target),)
        known = math.prod(dim for dim in target if dim != -1)
        if -1 in target:
            require(
                known > 0 and count % known == 0,
                "the elements do not fill the target shape",
                expected=f"a multiple of {known} elements for {target}",
                actual=count,
            )
            return (tuple(count // known if dim == -1 else dim for dim in target),)
        require(
            known == count,
            "the target shape has another number of elements",
            expected=f"{known} elements for {format_shape(target)}",
            actual=f"{count} elements in {format_shape(inputs[0].shape)}",
        )
        return (target,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the target shape already."""
        same_shape = inputs[0].is_fully_shaped and inputs[0].shape == outputs[0].shape
        return 0 if same_shape and inputs[0].quantization == outputs[0].quantization else None


@dataclass(frozen=True, slots=True)
class ExpandDims(DataMovement):
    """Insert an axis of size 1.

    Notes
    -----
    input (...); axis int32 () or (1,); output of one rank more.

    References
    ----------
    NNAPI and TFLite EXPAND_DIMS; Arm NN Reshape.
    """

    axis: int | None = None
    """Axis of the output; negative counts from its end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axis", ranks=(0, 1), becomes="axis"),
    )

    def __post_init__(self) -> None:
        unwrap_single(self, "axis")

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape with a 1 at the axis."""
        shape = inputs[0].shape or ()
        if self.axis is None:
            require_operand(inputs, 1, "axis")
            return ((None,) * (len(shape) + 1),)
        axis = normalize_axis(self.axis, len(shape) + 1)
        return ((*shape[:axis], 1, *shape[axis:]),)


@dataclass(frozen=True, slots=True)
class Squeeze(DataMovement):
    """Remove axes of size 1.

    Notes
    -----
    input (...); axes int32 (number of axes); output of a lower rank.

    References
    ----------
    NNAPI and TFLite SQUEEZE; Arm NN Reshape.
    """

    axes: tuple[int, ...] | None = None
    """Axes to remove; None or () for all of size 1; None also while the operand is unknown."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axes", ranks=(1,), becomes="axes"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape without the axes."""
        shape = inputs[0].shape or ()
        if not self.axes:
            awaited = self.axes is None and len(inputs) > 1 and inputs[1] is not None
            if awaited or None in shape:
                return (None,)
            return (tuple(dim for dim in shape if dim != 1),)
        axes = normalize_axes(self.axes, len(shape))
        require(
            all(shape[axis] in (1, None) for axis in axes),
            "an axis to be removed has another size than 1",
            expected=f"size 1 along axes {axes}",
            actual=format_shape(shape),
        )
        return (tuple(dim for axis, dim in enumerate(shape) if axis not in axes),)
