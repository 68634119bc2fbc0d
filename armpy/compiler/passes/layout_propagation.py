"""Layers with permuted axes: the operation that results, and the order of the other operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from armpy.compiler.pass_selection import CARRYING, ELEMENTWISE, RESHAPES, kind_of
from armpy.core.dataclass import dataclass
from armpy.graph import Layer, Value
from armpy.ops.operation import Operation
from armpy.ops.reshaping import Reshape
from armpy.tensor import TensorInfo

Permutation = tuple[int, ...]
"""For each axis of the new order, the axis of the old one, as in `numpy.transpose`."""


@dataclass(frozen=True, slots=True)
class PermutedLayer:
    """A layer with its axes in another order."""

    operation: Operation
    # The order of each operand; None for one that stays as it is.
    inputs: tuple[Permutation | None, ...]
    outputs: tuple[Permutation, ...]  # the order of each output


def composed(first: Permutation, then: Permutation) -> Permutation:
    """Compose two transposes, `first` before `then`."""
    return tuple(first[axis] for axis in then)


def inverse(perm: Permutation) -> Permutation:
    """The order that takes another one back."""
    return tuple(int(axis) for axis in np.argsort(perm))


def identity(perm: Permutation) -> bool:
    """Return whether every axis stays."""
    return perm == tuple(range(len(perm)))


def permuted_info(info: TensorInfo, perm: Permutation) -> TensorInfo:
    """A tensor with its axes in the other order."""
    return info.with_shape(tuple(info.known_shape[axis] for axis in perm))


def permuted_constant(value: Value, perm: Permutation) -> Value:
    """A constant with its axes in the other order; it is broadcast as before."""
    assert value.data is not None
    data = value.data.reshape((1,) * (len(perm) - value.data.ndim) + value.data.shape)
    data = np.ascontiguousarray(data.transpose(perm))
    return Value(value.id, value.info.with_shape(data.shape), value.name, data)


def permuted_from_input(
    layer: Layer,
    perm: Permutation,  # of the first input
) -> PermutedLayer | None:
    """Rewrite a layer for a first input whose axes have another order.

    Returns None if it cannot be.
    """
    kind = kind_of(layer)
    if kind not in CARRYING or not layer.inputs:
        return None
    values = [value for value in (*layer.inputs, *layer.outputs) if value is not None]
    # Scales of an axis would have to move with it.
    if any(value.info.has_per_axis_quantization for value in values):
        return None
    if kind in ELEMENTWISE:
        return _permuted_elementwise(layer, perm)
    if kind in RESHAPES:
        return _permuted_reshape(layer, perm)
    return _PERMUTED[kind](layer, perm)


def permuted_from_output(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """Rewrite a layer so that its first output has its axes in another order."""
    first = layer.inputs[0] if layer.inputs else None
    if kind_of(layer) not in CARRYING or first is None:
        return None
    source = perm
    if kind_of(layer) in RESHAPES:
        after = layer.outputs[0].info.known_shape
        order = _through_blocks(_blocks(after, first.info.known_shape), after, perm)
        if order is None:
            return None
        source = order
    elif kind_of(layer) not in ELEMENTWISE and first.info.rank != len(perm):
        return None
    permuted = permuted_from_input(layer, source)
    # The way back from an output is a guess; going forward from there proves it.
    return permuted if permuted is not None and permuted.outputs[0] == perm else None


def _all_outputs(layer: Layer, operation: Operation, perm: Permutation) -> PermutedLayer | None:
    """A layer in another order whose first input and outputs have the same axes."""
    if any(value.info.rank != len(perm) for value in layer.outputs):
        return None
    others: tuple[None, ...] = (None,) * (len(layer.inputs) - 1)
    return PermutedLayer(operation, (perm, *others), (perm,) * len(layer.outputs))


def _permuted_elementwise(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """Every tensor with the same axes; constants are broadcast as before."""
    if layer.outputs[0].info.rank != len(perm):
        return None
    orders: list[Permutation | None] = []
    for value in layer.inputs:
        # One element is broadcast alike in every order.
        if value is None or (value.info.rank != len(perm) and value.info.num_elements == 1):
            orders.append(None)
        # A computed operand of fewer axes would need a reshape of its own first.
        elif value.data is None and value.info.rank != len(perm):
            return None
        else:
            orders.append(perm)
    return PermutedLayer(layer.operation, tuple(orders), (perm,) * len(layer.outputs))


def _permuted_reshape(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """Blocks of axes that become each other move as wholes."""
    if len(layer.inputs) != 1 or layer.inputs[0] is None:
        return None
    before, after = layer["input"].info.known_shape, layer.output.info.known_shape
    order = _through_blocks(_blocks(before, after), before, perm)
    if order is None:
        return None
    shape = tuple(after[axis] for axis in order)
    return PermutedLayer(Reshape(shape), (perm,), (order,))


Block = tuple[tuple[int, ...], tuple[int, ...]]
"""Axes of one shape, and those of another one that hold the same elements."""


def _blocks(before: Sequence[int], after: Sequence[int]) -> list[Block] | None:
    """The smallest blocks of neighbouring axes that a reshape makes of each other."""
    # Products with 0 are all alike, and do not distinguish axes.
    if 0 in (*before, *after) or not before or not after:
        return None
    blocks: list[Block] = []
    start = done = 0
    while start < len(before) and done < len(after):
        left, right = start + 1, done + 1
        have, need = before[start], after[done]
        while have != need:
            if have < need:
                have, left = have * before[left], left + 1
            else:
                need, right = need * after[right], right + 1
        if left == len(before) or right == len(after):  # only axes of one element are left
            left, right = len(before), len(after)
        blocks.append((tuple(range(start, left)), tuple(range(done, right))))
        start, done = left, right
    return blocks


def _through_blocks(
    blocks: list[Block] | None, shape: Sequence[int], perm: Permutation
) -> Permutation | None:
    """Return the order after a reshape for an order before it; None if a block is split.

    Axes of one element may be anywhere.
    """
    if blocks is None:
        return None
    long_axes = [axis for axis in perm if shape[axis] != 1]
    placed: list[tuple[int, Block]] = []
    for block in blocks:
        mine = [axis for axis in block[0] if shape[axis] != 1]
        start = long_axes.index(mine[0]) if mine else 0
        if mine != long_axes[start : start + len(mine)]:
            return None
        placed.append((perm.index((mine or block[0])[0]), block))
    return tuple(axis for _, block in sorted(placed) for axis in block[1])


def _with_axis(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """An operation along one axis."""
    axis = layer.operation.attributes()["axis"]
    if axis is None:
        return None
    moved = perm.index(axis % len(perm))
    return _all_outputs(layer, layer.operation.with_attributes(axis=moved), perm)


def _permuted_concat(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """All inputs with the same axes."""
    permuted = _with_axis(layer, perm)
    return permuted and PermutedLayer(
        permuted.operation, (perm,) * len(layer.inputs), permuted.outputs
    )


def _per_axis(*names: str) -> Callable[[Layer, Permutation], PermutedLayer | None]:
    """An operation whose attributes have one entry per axis."""

    def permuted(layer: Layer, perm: Permutation) -> PermutedLayer | None:
        attributes = layer.operation.attributes()
        if any(attributes[name] is None or len(attributes[name]) != len(perm) for name in names):
            return None
        moved = {name: tuple(attributes[name][axis] for axis in perm) for name in names}
        return _all_outputs(layer, layer.operation.with_attributes(**moved), perm)

    return permuted


def _permuted_strided_slice(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """One entry per axis, and one bit of each mask."""
    attributes = layer.operation.attributes()
    # With these, entries are not one for each axis.
    if any(attributes[f"{mask}_mask"] for mask in ("shrink_axis", "ellipsis", "new_axis")):
        return None
    permuted = _per_axis("begin", "end", "stride")(layer, perm)
    if permuted is None:
        return None
    masks = {
        name: sum((attributes[name] >> axis & 1) << index for index, axis in enumerate(perm))
        for name in ("begin_mask", "end_mask")
    }
    return _all_outputs(layer, permuted.operation.with_attributes(**masks), perm)


def _permuted_reverse(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """Axes that are counted from the front."""
    axes = layer.operation.attributes()["axes"]
    if axes is None:
        return None
    moved = tuple(perm.index(axis % len(perm)) for axis in axes)
    return _all_outputs(layer, layer.operation.with_attributes(axes=moved), perm)


def _permuted_reduce(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """Axes that vanish, or keep one element; their elements have to come in the same order."""
    attributes = layer.operation.attributes()
    rank = len(perm)
    axes = attributes["axes"]
    gone = sorted({axis % rank for axis in (range(rank) if axes is None else axes)})
    moved = [index for index, axis in enumerate(perm) if axis in gone]
    # Sums of floats are to be added up in the order in which they were.
    if [perm[index] for index in moved] != gone:
        return None
    operation = layer.operation.with_attributes(axes=tuple(moved))
    if attributes["keep_dims"]:
        return _all_outputs(layer, operation, perm)
    return PermutedLayer(operation, (perm,), (_without(perm, gone),))


def _permuted_extreme(layer: Layer, perm: Permutation) -> PermutedLayer | None:
    """The axis along which the extreme is searched vanishes."""
    axis = layer.operation.attributes()["axis"]
    if axis is None or layer.output.info.rank != len(perm) - 1:
        return None
    gone = axis % len(perm)
    operation = layer.operation.with_attributes(axis=perm.index(gone))
    return PermutedLayer(operation, (perm,), (_without(perm, (gone,)),))


def _without(perm: Permutation, gone: Sequence[int]) -> Permutation:
    """An order of the axes that are left."""
    left = [axis for axis in range(len(perm)) if axis not in gone]
    return tuple(left.index(axis) for axis in perm if axis not in gone)


_PERMUTED: Mapping[str, Callable[[Layer, Permutation], PermutedLayer | None]] = MappingProxyType(
    {
        "ArgMinMax": _permuted_extreme,
        "BroadcastTo": _per_axis("broadcast_to_shape"),
        "Concat": _permuted_concat,
        "LogSoftmax": _with_axis,
        "Pad": _per_axis("pad_list"),
        "Reduce": _permuted_reduce,
        "ReverseV2": _permuted_reverse,
        "Slice": _per_axis("begin", "size"),
        "Softmax": _with_axis,
        "Splitter": _with_axis,
        "StridedSlice": _permuted_strided_slice,
        "Tile": _per_axis("multiples"),
    }
)
