"""Operations that move elements between the spatial axes and the channels or the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, length_of, require_operand, unknown_dims
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import check_padding, image_shape, spatial
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout

__all__ = ["BatchToSpaceNd", "DepthToSpace", "SpaceToBatchNd", "SpaceToDepth"]

_IMAGE = Operand("input", ranks=(4,))
_BATCHED = Operand("input", ranks=(3, 4))
_BLOCK_SHAPE = Operand("block_shape", ranks=(1,), becomes="block_shape")


@dataclass(frozen=True, slots=True)
class DepthToSpace(DataMovement):
    """Spread channels over square blocks of an image.

    Notes
    -----
    input (n, h, w, b * b * c); output (n, h * b, w * b, c). Channels are ordered by block row,
    block column, output channel.

    References
    ----------
    Arm NN DepthToSpace; NNAPI and TFLite DEPTH_TO_SPACE.
    """

    block_size: int = 1
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (_IMAGE,)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, h * b, w * b, c)."""
        shape, block = inputs[0].shape or (), self.block_size
        _check_block((block,))
        sizes = [_times(size, block) for size in spatial(shape, self.data_layout)]
        channels = _over(shape[self.data_layout.channel_axis], block * block, "channels")
        return (image_shape(self.data_layout, shape[0], sizes, channels),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if blocks have one element."""
        return 0 if self.block_size == 1 else None


@dataclass(frozen=True, slots=True)
class SpaceToDepth(DataMovement):
    """Gather square blocks of an image into channels; the inverse of `DepthToSpace`.

    Notes
    -----
    input (n, h, w, c); output (n, h / b, w / b, b * b * c).

    References
    ----------
    Arm NN SpaceToDepth; NNAPI and TFLite SPACE_TO_DEPTH.
    """

    block_size: int = 1
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (_IMAGE,)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, h / b, w / b, b * b * c)."""
        shape, block = inputs[0].shape or (), self.block_size
        _check_block((block,))
        sizes = [_over(size, block, "rows or columns") for size in spatial(shape, self.data_layout)]
        channels = _times(shape[self.data_layout.channel_axis], block * block)
        return (image_shape(self.data_layout, shape[0], sizes, channels),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if blocks have one element."""
        return 0 if self.block_size == 1 else None


@dataclass(frozen=True, slots=True)
class SpaceToBatchNd(DataMovement):
    """Pad an image and spread the elements of its blocks over the batch.

    Notes
    -----
    input (n, h, w, c); output (bh * bw * n, (h + pads) / bh, (w + pads) / bw, c). The batch is
    ordered by block row, block column, input batch.

    References
    ----------
    Arm NN SpaceToBatchNd; NNAPI and TFLite SPACE_TO_BATCH_ND.
    """

    block_shape: tuple[int, ...] | None = None
    """Block size per spatial axis."""
    pad_list: tuple[tuple[int, int], ...] | None = None
    """(before, after) per spatial axis; added elements are real 0."""
    data_layout: DataLayout = DataLayout.NHWC
    """A tensor of rank 3 has one spatial axis."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        _BATCHED,
        _BLOCK_SHAPE,
        Operand("pad_list", ranks=(2,), becomes="pad_list"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(bh * bw * n, (h + pads) / bh, (w + pads) / bw, c)."""
        shape = inputs[0].shape or ()
        block, pads = self.block_shape, self.pad_list
        if block is None:
            _check_length(require_operand(inputs, 1, "block_shape"), len(shape) - 2)
        if pads is None:
            require_operand(inputs, 2, "pad_list")
        if block is None or pads is None:
            return (_unknown_batches(shape, self.data_layout),)
        _check_block(block, len(shape) - 2)
        check_padding(pads, len(shape) - 2)
        sizes = [
            None if size is None else _over(before + size + after, b, "padded rows or columns")
            for size, b, (before, after) in zip(
                _spatial(shape, self.data_layout), block, pads, strict=True
            )
        ]
        batches = _times(shape[0], math.prod(block))
        return (_batched_shape(shape, self.data_layout, batches, sizes),)


@dataclass(frozen=True, slots=True)
class BatchToSpaceNd(DataMovement):
    """Gather blocks of an image from the batch and crop it; inverse of `SpaceToBatchNd`.

    Notes
    -----
    input (bh * bw * n, h, w, c); output (n, h * bh - crops, w * bw - crops, c).

    References
    ----------
    Arm NN BatchToSpaceNd; NNAPI and TFLite BATCH_TO_SPACE_ND (NNAPI crops nothing).
    """

    block_shape: tuple[int, ...] | None = None
    """Block size per spatial axis."""
    crops: tuple[tuple[int, int], ...] | None = None
    """Elements cut off (before, after) per spatial axis."""
    data_layout: DataLayout = DataLayout.NHWC
    """A tensor of rank 3 has one spatial axis."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        _BATCHED,
        _BLOCK_SHAPE,
        Operand("crops", ranks=(2,), becomes="crops"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, h * bh - crops, w * bw - crops, c)."""
        shape = inputs[0].shape or ()
        block, crops = self.block_shape, self.crops
        if block is None:
            _check_length(require_operand(inputs, 1, "block_shape"), len(shape) - 2)
        if crops is None:
            require_operand(inputs, 2, "crops")
        if block is None or crops is None:
            return (_unknown_batches(shape, self.data_layout),)
        _check_block(block, len(shape) - 2)
        check_padding(crops, len(shape) - 2)
        sizes = [
            _cropped(_times(size, b), pair)
            for size, b, pair in zip(_spatial(shape, self.data_layout), block, crops, strict=True)
        ]
        batches = _over(shape[0], math.prod(block), "batches")
        return (_batched_shape(shape, self.data_layout, batches, sizes),)


def _times(size: Dimension, factor: int) -> Dimension:
    """A size times a number; None if not known."""
    return None if size is None else size * factor


def _over(size: Dimension, divisor: int, noun: str) -> Dimension:
    """A size divided by a number that must divide it; None if not known."""
    require(
        size is None or size % divisor == 0,
        f"the {noun} do not split into blocks",
        expected=f"a multiple of {divisor}",
        actual=size,
    )
    return None if size is None else size // divisor


def _cropped(size: Dimension, crop: tuple[int, int]) -> Dimension:
    """A size less its crops; None if not known."""
    require(
        size is None or size >= sum(crop),
        "more is cropped than there is",
        expected=f"crops of at most {size} together",
        actual=str(crop),
    )
    return None if size is None else size - sum(crop)


def _check_block(block: Sequence[int], num_axes: int = 1) -> None:
    """Check that there is a block size >= 1 per spatial axis."""
    require(
        len(block) == num_axes,
        "there is not one block size per spatial axis",
        expected=str(num_axes),
        actual=str(tuple(block)),
    )
    require(
        all(size >= 1 for size in block),
        "a block size is not positive",
        expected="1 or more",
        actual=str(tuple(block)),
    )


def _check_length(block_shape: TensorInfo, num_axes: int) -> None:
    """Check the length of a block shape that is not known yet."""
    length = length_of(block_shape)
    require(
        length in (None, num_axes),
        "block_shape has the wrong length",
        expected=f"{num_axes} elements, one per spatial axis",
        actual=length,
    )


def _spatial(shape: Shape, layout: DataLayout) -> Shape:
    """Sizes along the spatial axes of a tensor of rank 3 or 4."""
    return shape[2:] if layout.channel_axis == 1 else shape[1:-1]


def _batched_shape(
    shape: Shape, layout: DataLayout, batches: Dimension, sizes: Sequence[Dimension]
) -> Shape:
    """A shape with other batches and spatial sizes and the same channels."""
    channels = shape[1] if layout.channel_axis == 1 else shape[-1]
    return image_shape(layout, batches, sizes, channels)


def _unknown_batches(shape: Shape, layout: DataLayout) -> Shape:
    """A shape of which only the channels are known."""
    return _batched_shape(shape, layout, None, unknown_dims(len(shape) - 2))
