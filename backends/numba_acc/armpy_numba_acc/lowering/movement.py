"""Lowers data movement: slices, permutations, repetitions, blocks, and other names for the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops.blocks import BatchToSpaceNd, DepthToSpace, SpaceToBatchNd, SpaceToDepth
from armpy.ops.generation import Fill, Rank, Shape
from armpy.ops.movement import BroadcastTo, ChannelShuffle, ReverseV2, Tile, Transpose
from armpy.ops.operation import Array, Operation
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze
from armpy.ops.shapes import normalize_axis
from armpy.ops.slicing import Slice, Splitter, Unstack
from armpy.ops.strided_slicing import StridedSlice
from armpy.types import DataLayout
from armpy_numba_acc.lowering.filling import emit_fill, stored_element
from armpy_numba_acc.lowering.moves import Side, emit_move, is_run, stand_in
from armpy_numba_acc.lowering.operands import anything, expect, needs
from armpy_numba_acc.lowering.stand_ins import broadcast, offset_within
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lower, LoweringRule

OperationT = TypeVar("OperationT", bound=Operation)

RESHAPES = (ExpandDims, Reshape, Squeeze)
"""Operations that give the bytes of their input another shape."""

Views = Callable[[OperationT, Array, Array], tuple[Array, Array]]
"""Which part of the input becomes which part of the output, as arrays of one shape."""


def lower_alias(emit: Emitter, layer: Layer) -> None:
    """The same bytes with another shape."""
    emit.alias(layer.output, layer["input"])


def lower_known(emit: Emitter, layer: Layer) -> None:
    """Return the values that follow from the input's shape."""
    shape = layer["input"].info.known_shape
    data = np.array(len(shape) if isinstance(layer.operation, Rank) else shape)
    emit.place(layer.output, emit.constant(data.astype(layer.output.info.data_type.dtype)))


def lower_fill(emit: Emitter, layer: Layer) -> None:
    """One element, everywhere."""
    value, output = layer["value"], layer.output
    if value.data is not None:
        element = stored_element(value.data, value.info)
        emit_fill(emit, emit.target(output), output.info.size_bytes, element, layer.name)
        return
    source, target = stand_in(value.info, output.info), stand_in(output.info)
    repeated = broadcast(source.reshape(()), target.shape)
    _move(emit, value, (source, repeated), output, (target, target), layer.name)


def by_views(kind: type[OperationT], views: Views[OperationT]) -> Lower:
    """A lowering that moves everything at once, if it has to be moved."""

    def lower(emit: Emitter, layer: Layer) -> None:
        """One move from the first input to the output."""
        value, output = layer["input"], layer.output
        begin = getattr(layer.operation, "begin", None) or ()
        source, target = stand_in(value.info, output.info, begin), stand_in(output.info)
        from_, to = views(expect(layer.operation, kind), source, target)
        if is_run(from_, to):
            emit.place_part(output, value, offset_within(from_, source))
            return
        _move(emit, value, (source, from_), output, (target, to), layer.name)

    return lower


def _move(
    emit: Emitter,
    value: Value,
    source: tuple[Array, Array],
    output: Value,
    target: tuple[Array, Array],
    label: str,
) -> None:
    """Move a part of a value into a part of another one; each a whole and its part."""
    sides = Side(emit.source(value), *source), Side(emit.target(output), *target)
    emit_move(emit, *sides, label)


# Parts of a tensor


def _sliced(operation: Slice, source: Array, target: Array) -> tuple[Array, Array]:
    """A block of the input."""
    begins = operation.begin or ()
    block = [slice(b, b + n) for b, n in zip(begins, target.shape, strict=True)]
    return source[tuple(block)], target


def _strided(operation: StridedSlice, source: Array, target: Array) -> tuple[Array, Array]:
    """Return the NumPy index of a slice."""
    # The ellipsis keeps a view where only one element is left.
    return source[(*operation.index(source.shape), ...)], target


def _reversed(operation: ReverseV2, source: Array, target: Array) -> tuple[Array, Array]:
    """The other way round along some axes."""
    return np.flip(source, operation.axes or ()), target


def lower_splitter(emit: Emitter, layer: Layer) -> None:
    """Parts of the input along an axis."""
    operation = expect(layer.operation, Splitter)
    axis = normalize_axis(operation.axis or 0, len(layer["input"].info.known_shape))
    _split(emit, layer, axis, [output.info.known_shape[axis] for output in layer.outputs])


def lower_unstack(emit: Emitter, layer: Layer) -> None:
    """Parts of one element along an axis, which they do not have."""
    operation = expect(layer.operation, Unstack)
    axis = normalize_axis(operation.axis, len(layer["input"].info.known_shape))
    _split(emit, layer, axis, [1] * len(layer.outputs))


def _split(emit: Emitter, layer: Layer, axis: int, sizes: Sequence[int]) -> None:
    """Move parts to where they are wanted; in place if they lie one after the other."""
    value = layer["input"]
    whole, start = stand_in(value.info), 0
    for output, size in zip(layer.outputs, sizes, strict=True):
        part = whole[(slice(None),) * axis + (slice(start, start + size),)]
        start += size
        if prod(whole.shape[:axis]) == 1:
            emit.place_part(output, value, offset_within(part, whole))
            continue
        target = stand_in(output.info)
        _move(emit, value, (whole, part), output, (target, target.reshape(part.shape)), layer.name)


# The order of axes


def _transposed(operation: Transpose, source: Array, target: Array) -> tuple[Array, Array]:
    """Axes in another order."""
    return source.transpose(operation.perm), target


def _shuffled(operation: ChannelShuffle, source: Array, target: Array) -> tuple[Array, Array]:
    """Groups and their elements swapped."""
    axis = normalize_axis(operation.axis, source.ndim)
    groups = operation.num_groups
    before, size, after = source.shape[:axis], source.shape[axis], source.shape[axis + 1 :]
    dealt = source.reshape(*before, groups, size // groups, *after).swapaxes(axis, axis + 1)
    return dealt, target.reshape(dealt.shape)


def _spread(operation: DepthToSpace, source: Array, target: Array) -> tuple[Array, Array]:
    """Channels over blocks."""
    block = operation.block_size
    if operation.data_layout is DataLayout.NCHW:
        n, c, h, w = source.shape
        blocks = source.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        n, h, w, c = source.shape
        blocks = source.reshape(n, h, w, block, block, c // block**2).transpose(0, 1, 3, 2, 4, 5)
    return blocks, target.reshape(blocks.shape)


def _gathered(operation: SpaceToDepth, source: Array, target: Array) -> tuple[Array, Array]:
    """Blocks into channels."""
    block = operation.block_size
    if operation.data_layout is DataLayout.NCHW:
        n, c, h, w = source.shape
        blocks = source.reshape(n, c, h // block, block, w // block, block)
        blocks = blocks.transpose(0, 3, 5, 1, 2, 4)
    else:
        n, h, w, c = source.shape
        blocks = source.reshape(n, h // block, block, w // block, block, c)
        blocks = blocks.transpose(0, 1, 3, 2, 4, 5)
    return blocks, target.reshape(blocks.shape)


# Repetition


def _tiled(operation: Tile, source: Array, target: Array) -> tuple[Array, Array]:
    """Repeated over one more axis in front of each."""
    pairs = list(zip(operation.multiples or (), source.shape, strict=True))
    repeated = target.reshape([size for pair in pairs for size in pair])
    single = source.reshape([size for _, length in pairs for size in (1, length)])
    return broadcast(single, repeated.shape), repeated


def _broadcast(operation: BroadcastTo, source: Array, target: Array) -> tuple[Array, Array]:
    """Repeated as NumPy does."""
    return broadcast(source, target.shape), target


# Between batch and space


def lower_space_to_batch(emit: Emitter, layer: Layer) -> None:
    """One move per position in a block; zeros around."""
    operation = expect(layer.operation, SpaceToBatchNd)
    value, output = layer["input"], layer.output
    source, target = stand_in(value.info), stand_in(output.info)
    block, pads = operation.block_shape or (), operation.pad_list or ()
    if any(map(any, pads)):
        zero = np.array(output.info.zero_point).astype(output.info.data_type.dtype)
        element = stored_element(zero, output.info)
        emit_fill(emit, emit.target(output), output.info.size_bytes, element, layer.name)
    first = 2 if operation.data_layout.channel_axis == 1 else 1
    starts = [pair[0] for pair in pads]
    for batch, place in _positions(block, target, source.shape[0]):
        from_, to = _meeting(source, target[batch], first, block, place, starts)
        if from_.size:
            _move(emit, value, (source, from_), output, (target, to), layer.name)


def lower_batch_to_space(emit: Emitter, layer: Layer) -> None:
    """One move per position in a block."""
    operation = expect(layer.operation, BatchToSpaceNd)
    value, output = layer["input"], layer.output
    source, target = stand_in(value.info), stand_in(output.info)
    block, crops = operation.block_shape or (), operation.crops or ()
    first = 2 if operation.data_layout.channel_axis == 1 else 1
    starts = [pair[0] for pair in crops]
    for batch, place in _positions(block, source, target.shape[0]):
        to, from_ = _meeting(target, source[batch], first, block, place, starts)
        if from_.size:
            _move(emit, value, (source, from_), output, (target, to), layer.name)


def _positions(
    block: Sequence[int], batched: Array, images: int
) -> Iterator[tuple[slice, tuple[int, ...]]]:
    for number, place in enumerate(product(*map(range, block))):
        yield slice(number * images, (number + 1) * images), place


def _meeting(
    image: Array,
    grid: Array,
    first: int,
    block: Sequence[int],
    place: Sequence[int],
    starts: Sequence[int],
) -> tuple[Array, Array]:
    """Elements of an image at one position of all blocks, and those of the grid they are.

    Along each spatial axis, element ``i`` of the grid is ``i * block + place - start`` of the
    image, if there is one.
    """
    in_image, in_grid = [slice(None)] * image.ndim, [slice(None)] * grid.ndim
    for axis, (step, at, start) in enumerate(zip(block, place, starts, strict=True), first):
        lowest = max(-(-(start - at) // step), 0)
        begin = lowest * step + at - start
        count = max(min(len(range(begin, image.shape[axis], step)), grid.shape[axis] - lowest), 0)
        in_image[axis] = slice(begin, begin + count * step, step)
        in_grid[axis] = slice(lowest, lowest + count)
    return image[tuple(in_image)], grid[tuple(in_grid)]


LOWERINGS: Mapping[type[Operation], LoweringRule] = {
    BatchToSpaceNd: LoweringRule(needs("block_shape", "crops"), lower_batch_to_space),
    BroadcastTo: LoweringRule(anything, by_views(BroadcastTo, _broadcast)),
    ChannelShuffle: LoweringRule(anything, by_views(ChannelShuffle, _shuffled)),
    DepthToSpace: LoweringRule(anything, by_views(DepthToSpace, _spread)),
    ExpandDims: LoweringRule(anything, lower_alias),
    Fill: LoweringRule(anything, lower_fill),
    Rank: LoweringRule(anything, lower_known),
    Reshape: LoweringRule(anything, lower_alias),
    ReverseV2: LoweringRule(needs("axes"), by_views(ReverseV2, _reversed)),
    Shape: LoweringRule(anything, lower_known),
    Slice: LoweringRule(needs("begin"), by_views(Slice, _sliced)),
    SpaceToBatchNd: LoweringRule(needs("block_shape", "pad_list"), lower_space_to_batch),
    SpaceToDepth: LoweringRule(anything, by_views(SpaceToDepth, _gathered)),
    Splitter: LoweringRule(needs("axis"), lower_splitter),
    Squeeze: LoweringRule(anything, lower_alias),
    StridedSlice: LoweringRule(needs("begin", "end", "stride"), by_views(StridedSlice, _strided)),
    Tile: LoweringRule(needs("multiples"), by_views(Tile, _tiled)),
    Transpose: LoweringRule(needs("perm"), by_views(Transpose, _transposed)),
    Unstack: LoweringRule(anything, lower_unstack),
}
