"""Operations that take parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import (
    DataMovement,
    require_operand,
    require_per_axis,
    unknown_dims,
    unwrap_single,
)
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Dimension, Shape, TensorInfo, format_shape
from armpy.types import DataType

__all__ = ["Gather", "GatherNd", "Slice", "Splitter", "Unstack"]


@dataclass(frozen=True, slots=True)
class Slice(DataMovement):
    """Cut a block out of a tensor.

    Notes
    -----
    input (...); begin and size int32 or int64 (rank); output of the input's rank.

    References
    ----------
    Arm NN Slice; NNAPI and TFLite SLICE.
    """

    begin: tuple[int, ...] | None = None
    """First element along each axis."""
    size: tuple[int, ...] | None = None
    """Number of elements along each axis; -1 for all that follow."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("begin", ranks=(1,), becomes="begin"),
        Operand("size", ranks=(1,), becomes="size"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The size, with each -1 worked out."""
        shape = inputs[0].shape or ()
        if self.begin is None:
            require_operand(inputs, 1, "begin")
        else:
            require_per_axis(self.begin, len(shape), "begin")
        if self.size is None:
            require_operand(inputs, 2, "size")
        else:
            require_per_axis(self.size, len(shape), "size")
        begins: Sequence[int | None] = self.begin or unknown_dims(len(shape))
        sizes: Sequence[int | None] = self.size or unknown_dims(len(shape))
        return (tuple(map(_sliced, shape, begins, sizes)),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if all of it is taken."""
        return 0 if inputs[0].is_fully_shaped and inputs[0].shape == outputs[0].shape else None


def _sliced(dim: Dimension, begin: int | None, size: int | None) -> Dimension:
    """Number of elements that a slice takes along an axis; None if not known."""
    end = None if begin is None or size is None else begin + max(size, 0)
    require(
        (begin is None or begin >= 0)
        and (size is None or size >= -1)
        and (end is None or dim is None or end <= dim),
        "the slice does not lie within the input",
        expected=f"begin >= 0, size >= -1, begin + size <= {'?' if dim is None else dim}",
        actual=f"begin {begin}, size {size}",
    )
    if size == -1:
        return None if dim is None or begin is None else dim - begin
    return size


@dataclass(frozen=True, slots=True)
class Splitter(DataMovement):
    """Cut a tensor into parts along an axis.

    Notes
    -----
    input (..., a, ...); sizes int32 or int64 (num_splits); axis int32 () or (1,); outputs
    (..., a_i, ...).

    References
    ----------
    Arm NN Splitter; NNAPI SPLIT; TFLite SPLIT (whose axis comes first), SPLIT_V.
    """

    num_splits: int | None = None
    """Number of outputs; needed unless `sizes` is known."""
    axis: int | None = None
    sizes: tuple[int, ...] | None = None
    """Sizes along the axis; one may be -1: it follows from the others. None for equal parts.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("sizes", ranks=(1,), becomes="sizes"),
        Operand("axis", ranks=(0, 1), becomes="axis"),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    def __post_init__(self) -> None:
        unwrap_single(self, "axis")

    @property
    def num_outputs(self) -> int:
        """Number of parts."""
        return len(self.sizes) if self.sizes is not None else self.num_splits or 1

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape with each part's size at the axis."""
        shape, count = inputs[0].shape or (), self.num_outputs
        require(
            self.num_splits in (None if self.sizes is not None else count, count),
            "the number of parts is wrong",
            expected="1 or more" if self.sizes is None else f"{count}, the number of sizes",
            actual=self.num_splits,
        )
        if self.axis is None:
            require_operand(inputs, 2, "axis")
            return (unknown_dims(len(shape)),) * count
        axis = normalize_axis(self.axis, len(shape))
        return tuple(
            (*shape[:axis], part, *shape[axis + 1 :]) for part in self._parts(inputs, axis)
        )

    def _parts(self, inputs: Sequence[TensorInfo], axis: int) -> Sequence[Dimension]:
        """Size of each part along the axis."""
        total, count = (inputs[0].shape or ())[axis], self.num_outputs
        if self.sizes is not None:
            return _resolved_sizes(self.sizes, total)
        if total is None or (len(inputs) > 1 and inputs[1] is not None):
            return (None,) * count
        require(
            total % count == 0,
            "the axis does not split into equal parts",
            expected=f"a multiple of {count} along axis {axis}",
            actual=total,
        )
        return (total // count,) * count

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if there is one part."""
        return 0 if len(outputs) == 1 and inputs[0].shape == outputs[0].shape else None


def _resolved_sizes(sizes: Sequence[int], total: Dimension) -> Sequence[Dimension]:
    """Sizes of parts with -1 worked out; checked against the whole."""
    known = sum(size for size in sizes if size != -1)
    open_sizes = sizes.count(-1)
    require(
        open_sizes <= 1
        and min(sizes, default=0) >= -1
        and (total is None or known == total or (open_sizes and known < total)),
        "the sizes do not add up to the axis",
        expected=f"numbers >= 0, one of which may be -1, that give {total} together",
        actual=str(tuple(sizes)),
    )
    rest = None if total is None else total - known
    return tuple(rest if size == -1 else size for size in sizes)


@dataclass(frozen=True, slots=True)
class Unstack(DataMovement):
    """Take a tensor apart along an axis, which vanishes.

    Notes
    -----
    input (..., num, ...); outputs of one rank less. The inverse of `Stack`.

    References
    ----------
    TFLite UNPACK; Arm NN Splitter followed by Reshape.
    """

    num: int = 1
    """Number of outputs, the size along the axis."""
    axis: int = 0

    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    @property
    def num_outputs(self) -> int:
        """Size along the axis."""
        return self.num

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape without the axis."""
        shape = inputs[0].shape or ()
        axis = normalize_axis(self.axis, len(shape))
        require(
            shape[axis] in (self.num, None),
            "the number of outputs is not the size along the axis",
            expected=f"{self.num} elements along axis {axis}",
            actual=shape[axis],
        )
        return ((*shape[:axis], *shape[axis + 1 :]),) * self.num


@dataclass(frozen=True, slots=True)
class Gather(DataMovement):
    """Look up slices along an axis.

    Notes
    -----
    input (b..., o..., a, i...); indices int16, int32 or int64 (b..., k...), each in
    [0, a), or [-a, a); output (b..., o..., k..., i...).

    References
    ----------
    Arm NN Gather; NNAPI and TFLite GATHER; ONNX Gather, which has `wraps_negative`.
    """

    axis: int = 0
    """Axis of the input that the indices run along."""
    batch_dims: int = 0
    """Number of common outer axes; at most `axis`."""
    wraps_negative: bool = False
    """Whether indices below 0 count from the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input"), Operand("indices"))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape with the indices' shape in place of the axis."""
        shape, indices = inputs[0].shape or (), inputs[1].shape or ()
        axis, batch = self.resolved_axes(len(shape), len(indices))
        check_batches(shape[:batch], indices[:batch])
        return ((*shape[:axis], *indices[batch:], *shape[axis + 1 :]),)

    def resolved_axes(self, rank: int, indices_rank: int) -> tuple[int, int]:
        """The axis and the number of batch axes, counted from the front and checked."""
        axis = normalize_axis(self.axis, rank)
        batch = self.batch_dims + (indices_rank if self.batch_dims < 0 else 0)
        require(
            0 <= batch <= min(axis, indices_rank),
            "batch_dims is out of range",
            expected=f"0 to {min(axis, indices_rank)}",
            actual=self.batch_dims,
        )
        return axis, batch

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; indices are integers."""
        DataMovement.validate(self, inputs, outputs)
        check_indices(inputs[1])


@dataclass(frozen=True, slots=True)
class GatherNd(DataMovement):
    """Look up slices by coordinates along the outer axes.

    Notes
    -----
    input (b..., a_1, ..., a_d, i...); indices int16, int32 or int64 (b..., k..., d), each
    coordinate in [0, a_j), or [-a_j, a_j); output (b..., k..., i...).

    References
    ----------
    Arm NN GatherNd; TFLite GATHER_ND; ONNX GatherND, which has the attributes.
    """

    batch_dims: int = 0
    """Number of common outer axes."""
    wraps_negative: bool = False
    """Whether indices below 0 count from the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("indices", ranks=tuple(range(1, 9))),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The indices' shape but its last axis, then the input's other axes."""
        shape, indices, batch = inputs[0].shape or (), inputs[1].shape or (), self.batch_dims
        require(
            0 <= batch < len(indices) and batch <= len(shape),
            "batch_dims is out of range",
            expected=f"0 to {min(len(shape), len(indices) - 1)}",
            actual=batch,
        )
        check_batches(shape[:batch], indices[:batch])
        depth = indices[-1]
        if depth is None:
            return (None,)
        require(
            depth <= len(shape) - batch,
            "the indices have too many coordinates",
            expected=f"at most {len(shape) - batch}, the input's axes after the batch",
            actual=depth,
        )
        return ((*indices[:-1], *shape[batch + depth :]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; indices are integers."""
        DataMovement.validate(self, inputs, outputs)
        check_indices(inputs[1])


def check_batches(shape: Shape, indices: Shape) -> None:
    """Check that input and indices have the same batch axes."""
    for a, b in zip(shape, indices, strict=True):
        require(
            a is None or b is None or a == b,
            "the batch axes of input and indices differ",
            expected=f"{format_shape(shape)} in front",
            actual=format_shape(indices),
        )


def check_indices(indices: TensorInfo) -> None:
    """Check that indices are signed integers."""
    require(
        indices.data_type in (DataType.SIGNED16, DataType.SIGNED32, DataType.SIGNED64),
        "the indices have the wrong data type",
        expected="SIGNED16, SIGNED32 or SIGNED64",
        actual=indices.data_type.name,
    )
