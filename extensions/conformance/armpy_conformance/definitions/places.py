"""Operations that cut, pad, look up and find elements, from their descriptions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import (
    ArgMinMax,
    ArgMinMaxFunction,
    BatchToSpaceNd,
    Gather,
    GatherNd,
    Operation,
    Slice,
    SpaceToBatchNd,
    StridedSlice,
)
from armpy.types import DataLayout

Numbers: TypeAlias = npt.NDArray[Any]  # Any: float64, or a tensor's own elements


def _cut(operation: Slice, inputs: Sequence[Numbers], _: object) -> Sequence[Numbers]:
    begin, size = operation.begin or (), operation.size or ()
    places = tuple(
        slice(first, None if count == -1 else first + count)
        for first, count in zip(begin, size, strict=True)
    )
    return (inputs[0][places],)


def _cut_in_steps(
    operation: StridedSlice, inputs: Sequence[Numbers], _: object
) -> Sequence[Numbers]:
    """NumPy's indexing, entry by entry; positions beyond the borders are moved to them."""
    index: list[Any] = []  # Any: what NumPy takes as an index
    entries = zip(operation.begin or (), operation.end or (), operation.stride or (), strict=True)
    for number, (begin, end, stride) in enumerate(entries):
        bit = 1 << number
        if operation.ellipsis_mask & bit:
            index.append(...)
        elif operation.new_axis_mask & bit:
            index.append(None)
        elif operation.shrink_axis_mask & bit:
            index.append(begin)
        else:
            first = None if operation.begin_mask & bit else begin
            last = None if operation.end_mask & bit else end
            if operation.end_is_offset and last is not None:
                last = begin + end
            index.append(slice(first, last, stride))
    return (inputs[0][tuple(index)],)


def _looked_up(operation: Gather, inputs: Sequence[Numbers], outputs: Any) -> Sequence[Numbers]:
    values, indices = inputs
    axis, batch = operation.axis % values.ndim, operation.batch_dims
    result = np.empty(outputs[0].known_shape, values.dtype)
    for place in np.ndindex(indices.shape):
        outer = place[:batch]
        rows = values[outer]
        taken = rows.take(int(indices[place]), axis=axis - batch)
        before = (slice(None),) * (axis - batch)
        result[(*outer, *before, *place[batch:])] = taken
    return (result,)


def _looked_up_at_places(
    operation: GatherNd, inputs: Sequence[Numbers], outputs: Any
) -> Sequence[Numbers]:
    values, indices = inputs
    batch = operation.batch_dims
    result = np.empty(outputs[0].known_shape, values.dtype)
    for place in np.ndindex(indices.shape[:-1]):
        result[place] = values[(*place[:batch], *map(int, indices[place]))]
    return (result,)


def _found(operation: ArgMinMax, inputs: Sequence[Numbers], _: object) -> Sequence[Numbers]:
    """The first of equal elements."""
    find = np.argmax if operation.function is ArgMinMaxFunction.MAX else np.argmin
    return (np.asarray(find(inputs[0], axis=operation.axis)),)


def _last(operation: Any, image: Numbers) -> Numbers:  # Any: with a layout
    """An image or a row with the channels last."""
    is_first = operation.data_layout is DataLayout.NCHW and image.ndim == 4
    return image.transpose(0, 2, 3, 1) if is_first else image


def _as_given(operation: Any, image: Numbers) -> Numbers:  # Any: with a layout
    is_first = operation.data_layout is DataLayout.NCHW and image.ndim == 4
    return image.transpose(0, 3, 1, 2) if is_first else image


def _from_batch(
    operation: BatchToSpaceNd, inputs: Sequence[Numbers], _: object
) -> Sequence[Numbers]:
    """Image n of block place p is at p * batches + n of the batch."""
    image, blocks = _last(operation, inputs[0]), operation.block_shape or ()
    crops = operation.crops or ((0, 0),) * len(blocks)
    batches = image.shape[0] // int(np.prod(blocks))
    sizes = [size * block for size, block in zip(image.shape[1:], blocks, strict=False)]
    result = np.empty((batches, *sizes, image.shape[-1]), image.dtype)
    for number, offsets in enumerate(itertools.product(*map(range, blocks))):
        steps = (slice(o, None, block) for o, block in zip(offsets, blocks, strict=True))
        result[(slice(None), *steps)] = image[number * batches : (number + 1) * batches]
    kept = (slice(before, size - after) for size, (before, after) in zip(sizes, crops, strict=True))
    return (_as_given(operation, result[(slice(None), *kept)]),)


def _to_batch(operation: SpaceToBatchNd, image: Numbers, fill: Any) -> Numbers:  # Any: an element
    """The padded image's elements, those of one place in their blocks after another."""
    image, blocks = _last(operation, image), operation.block_shape or ()
    pads = operation.pad_list or ((0, 0),) * len(blocks)
    padded = np.pad(image, ((0, 0), *pads, (0, 0)), constant_values=fill)
    parts = []
    for offsets in itertools.product(*map(range, blocks)):
        steps = (slice(o, None, block) for o, block in zip(offsets, blocks, strict=True))
        parts.append(padded[(slice(None), *steps)])
    return _as_given(operation, np.concatenate(parts))


PLACES: Mapping[type[Operation], Callable[..., Sequence[Numbers]]] = {
    ArgMinMax: _found,
    BatchToSpaceNd: _from_batch,
    Gather: _looked_up,
    GatherNd: _looked_up_at_places,
    Slice: _cut,
    StridedSlice: _cut_in_steps,
}
"""Definitions for elements of any type."""

PADDED: Mapping[type[Operation], Callable[..., Sequence[Numbers]]] = {
    SpaceToBatchNd: lambda op, inputs, _: (_to_batch(op, inputs[0], 0.0),),
}
"""Definitions for real numbers, as they add zeros."""
