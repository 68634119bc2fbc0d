"""Operations that rearrange or repeat elements of one tensor."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import (
    DataMovement,
    require_operand,
    require_per_axis,
    require_same_elements,
    shape_of_operand,
    unknown_dims,
)
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import broadcast_shapes, distinct_axes, normalize_axes, normalize_axis
from armpy.tensor import Dimension, Shape, TensorInfo, format_shape

__all__ = [
    "BroadcastTo",
    "ChannelShuffle",
    "Pad",
    "PaddingMode",
    "ReverseV2",
    "Tile",
    "Transpose",
]


class PaddingMode(enum.Enum):
    """Mode of `Pad`, which fills the elements that it adds; numbers are Arm NN's.

    REFLECT mirrors at the centre of the outermost element, SYMMETRIC at its outer edge. EDGE
    repeats the outermost element, WRAP the whole tensor.
    """

    CONSTANT = 0
    REFLECT = 1
    SYMMETRIC = 2
    EDGE = 3
    WRAP = 4


@dataclass(frozen=True, slots=True)
class Pad(DataMovement):
    """Add elements around a tensor.

    Notes
    -----
    input (...); pad_value () or (1,), one stored element of the input's type and quantisation;
    pad_list int32 or int64 (rank, 2); output of the input's rank. For quantised tensors, Arm NN's
    attribute is the operand here.

    References
    ----------
    Arm NN Pad; NNAPI PAD, PAD_V2; TFLite PAD, PADV2, MIRROR_PAD; ONNX Pad, which has EDGE and WRAP.
    """

    pad_list: tuple[tuple[int, int], ...] | None = None
    """(before, after) per axis."""
    pad_value: float = 0.0
    """Real number that CONSTANT adds without the operand ``pad_value``; quantised in quantised
    tensors.
    """
    padding_mode: PaddingMode = PaddingMode.CONSTANT

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("pad_value", optional=True, ranks=(0, 1)),
        Operand("pad_list", ranks=(2,), becomes="pad_list"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's sizes plus the padding."""
        shape = inputs[0].shape or ()
        if self.pad_list is None:
            require_operand(inputs, 2, "pad_list")
            return (unknown_dims(len(shape)),)
        require_per_axis(self.pad_list, len(shape), "pad_list")
        require(
            all(len(pair) == 2 for pair in self.pad_list),
            "the padding is not a pair of numbers per axis",
            actual=str(self.pad_list),
        )
        require(
            all(min(pair) >= 0 for pair in self.pad_list),
            "the padding is negative",
            expected="pairs of numbers >= 0",
            actual=str(self.pad_list),
        )
        self._check_mirror(shape)
        return (
            tuple(
                None if dim is None else before + dim + after
                for dim, (before, after) in zip(shape, self.pad_list, strict=True)
            ),
        )

    def _check_mirror(self, shape: Shape) -> None:
        """Check that there are enough elements to mirror."""
        if self.padding_mode is PaddingMode.CONSTANT:
            return
        if self.padding_mode in (PaddingMode.EDGE, PaddingMode.WRAP):
            require(
                not any(
                    dim == 0 and any(pair)
                    for dim, pair in zip(shape, self.pad_list or (), strict=True)
                ),
                "an axis without elements has none to repeat",
                actual=shape,
            )
            return
        centre = 1 if self.padding_mode is PaddingMode.REFLECT else 0
        for axis, (dim, pair) in enumerate(zip(shape, self.pad_list or (), strict=True)):
            require(
                dim is None or max(pair) <= max(dim - centre, 0),
                "more is to be mirrored than there is",
                expected=f"padding of at most {max((dim or 0) - centre, 0)} along axis {axis}",
                actual=str(pair),
            )

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation of all data operands."""
        # super() does not work here: a slotted dataclass is another class than its body's.
        DataMovement.validate(self, inputs, outputs)
        if len(inputs) > 1 and inputs[1] is not None:
            require_same_elements(inputs[0], inputs[1], "pad_value")

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if nothing is added."""
        nothing = self.pad_list is not None and not any(map(any, self.pad_list))
        return 0 if nothing else None


@dataclass(frozen=True, slots=True)
class Transpose(DataMovement):
    """Put the axes into another order.

    Notes
    -----
    input (...); perm int32 (rank); output of the input's rank.

    References
    ----------
    Arm NN Transpose; NNAPI and TFLite TRANSPOSE.
    """

    perm: tuple[int, ...] | None = None
    """Input axis that becomes each output axis, as in NumPy."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("perm", ranks=(1,), becomes="perm"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's sizes in the new order."""
        shape = inputs[0].shape or ()
        if self.perm is None:
            require_operand(inputs, 1, "perm")
            return (unknown_dims(len(shape)),)
        require_per_axis(self.perm, len(shape), "perm")
        require(
            normalize_axes(self.perm, len(shape)) == tuple(range(len(shape))),
            "perm is not a permutation of the axes",
            expected=f"each of 0 to {len(shape) - 1} once",
            actual=str(self.perm),
        )
        return (tuple(shape[axis] for axis in self.perm),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if every axis stays."""
        return 0 if self.perm is not None and self.perm == tuple(range(len(self.perm))) else None


@dataclass(frozen=True, slots=True)
class Tile(DataMovement):
    """Repeat a tensor along its axes.

    Notes
    -----
    input (...); multiples int32 or int64 (rank); output of the input's rank.

    References
    ----------
    Arm NN Tile; NNAPI and TFLite TILE.
    """

    multiples: tuple[int, ...] | None = None
    """Number of repetitions per axis."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("multiples", ranks=(1,), becomes="multiples"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's sizes times the multiples."""
        shape = inputs[0].shape or ()
        if self.multiples is None:
            require_operand(inputs, 1, "multiples")
            return (unknown_dims(len(shape)),)
        require_per_axis(self.multiples, len(shape), "multiples")
        require(
            all(times >= 0 for times in self.multiples),
            "a multiple is negative",
            expected="numbers >= 0",
            actual=str(self.multiples),
        )
        return (
            tuple(
                None if dim is None else dim * times
                for dim, times in zip(shape, self.multiples, strict=True)
            ),
        )

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it is taken once along every axis."""
        # No set of them: sizes that are traced would be fixed.
        once = self.multiples is not None and all(times == 1 for times in self.multiples)
        return 0 if once else None


@dataclass(frozen=True, slots=True)
class BroadcastTo(DataMovement):
    """Repeat axes of size 1 to a given shape.

    Notes
    -----
    input (...); broadcast_to_shape int32 or int64 (rank of the output); output of that
    shape. Axes are aligned at the last one.

    References
    ----------
    Arm NN BroadcastTo; TFLite BROADCAST_TO.
    """

    broadcast_to_shape: tuple[int, ...] | None = None

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("broadcast_to_shape", ranks=(1,), becomes="broadcast_to_shape"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The given shape."""
        target = self.broadcast_to_shape
        if target is None:
            return (shape_of_operand(inputs, 1, "broadcast_to_shape"),)
        require(
            all(size >= 0 for size in target),
            "the shape to broadcast to has a negative size",
            expected="sizes of 0 or more",
            actual=target,
        )
        result = broadcast_shapes(inputs[0].shape, target)
        require(
            result is not None and all(map(_fits, result, target)) and len(result) == len(target),
            "the input does not broadcast to the shape",
            expected=f"sizes of {format_shape(target)}, or 1",
            actual=format_shape(inputs[0].shape),
        )
        return (target,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the shape already."""
        return 0 if inputs[0].is_fully_shaped and inputs[0].shape == outputs[0].shape else None


def _fits(broadcast: Dimension, target: int) -> bool:
    """Return whether broadcasting changed nothing about the target size."""
    return broadcast is None or broadcast == target


@dataclass(frozen=True, slots=True)
class ReverseV2(DataMovement):
    """Reverse the order of the elements along axes.

    Notes
    -----
    input (...); axes int32 (number of axes); output of the input's shape.

    References
    ----------
    Arm NN ReverseV2; TFLite REVERSE_V2.
    """

    axes: tuple[int, ...] | None = None

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axes", ranks=(1,), becomes="axes"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape = inputs[0].shape or ()
        if self.axes is None:
            require_operand(inputs, 1, "axes")
        else:
            distinct_axes(self.axes, len(shape))
        return (shape,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if there is no axis to reverse."""
        return 0 if self.axes == () else None


@dataclass(frozen=True, slots=True)
class ChannelShuffle(DataMovement):
    """Deal out the elements along an axis among groups.

    Notes
    -----
    input (...); output as input: of consecutive groups of equal size all first elements, then all
    second ones, and so on.

    References
    ----------
    Arm NN ChannelShuffle; NNAPI CHANNEL_SHUFFLE.
    """

    num_groups: int = 1
    axis: int = -1

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape = inputs[0].shape or ()
        size = shape[normalize_axis(self.axis, len(shape))]
        require(
            self.num_groups >= 1 and (size is None or size % self.num_groups == 0),
            "the axis does not split into groups of equal size",
            expected=f"a multiple of {self.num_groups}, which is 1 or more",
            actual=size,
        )
        return (shape,)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if there is one group."""
        return 0 if self.num_groups == 1 else None
