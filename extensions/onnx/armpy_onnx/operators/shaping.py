"""Operators that give elements another shape or order, or repeat them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.movement import BroadcastTo, Tile
from armpy.ops.operation import Operation, require
from armpy.ops.shapes import broadcast_shapes
from armpy_onnx.blocks import readable, reshaped, transposed
from armpy_onnx.node import Node, Operator, OperatorTable


def _reshape(node: Node) -> Value:
    shape = node.shape(0)
    target = list(node.integers("shape") if node.version < 5 else node.ints(1))
    if not node.flag("allowzero"):
        require(
            all(dim != 0 or axis < len(shape) for axis, dim in enumerate(target)),
            "an axis of size 0 has no counterpart in the input",
            expected=f"at most {len(shape)} axes up to the last 0",
            actual=str(target),
        )
        target = [shape[axis] if dim == 0 else dim for axis, dim in enumerate(target)]
    if target.count(-1) == 1 and 0 in shape:  # the number of elements does not determine it then
        known = math.prod(dim for dim in target if dim != -1)
        require(known, "the size that is left out is not known", actual=str(target))
        target[target.index(-1)] = 0
    return reshaped(node, node.value(0), target)


def _flatten(node: Node) -> Value:
    shape = node.shape(0)
    axis = node.integer("axis", 1)
    require(
        -len(shape) <= axis <= len(shape),
        "the axis is out of range",
        expected=f"rank {len(shape)}",
        actual=axis,
    )
    axis += len(shape) if axis < 0 else 0
    return reshaped(node, node.value(0), (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _squeeze(node: Node) -> Value:
    shape = node.shape(0)
    axes = node.axes(len(shape), index=1 if node.version >= 13 else None)
    if axes is None:
        axes = tuple(axis for axis, dim in enumerate(shape) if dim == 1)
    require(
        all(shape[axis] == 1 for axis in axes),
        "an axis to be removed has another size than 1",
        expected=f"size 1 along axes {axes}",
        actual=shape,
    )
    dims = tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
    return reshaped(node, node.value(0), dims)


def _unsqueeze(node: Node) -> Value:
    shape = node.shape(0)
    axes_given = node.ints(1) if node.version >= 13 else node.integers("axes")
    rank = len(shape) + len(axes_given)
    axes = {node.axis(axis, rank) for axis in axes_given}
    require(len(axes) == len(axes_given), "an axis is named twice", actual=str(axes_given))
    dims = iter(shape)
    shape_out = [1 if axis in axes else next(dims) for axis in range(rank)]
    return reshaped(node, node.value(0), shape_out)


def _expand(node: Node) -> Value:
    value, sizes = node.value(0), node.ints(1)
    require(min(sizes, default=0) >= 0, "a size is negative", actual=str(sizes))
    target = broadcast_shapes(value.info.known_shape, sizes)
    if target == value.info.shape:
        return value
    dims = tuple(dim or 0 for dim in target or ())
    return _spread(node, BroadcastTo(dims), value, dims)


def _transpose(node: Node) -> Value:
    rank = node.rank(0)
    perm = node.integers("perm", tuple(reversed(range(rank))))
    return transposed(node, node.value(0), [node.axis(axis, rank) for axis in perm])


def _tile(node: Node) -> Value:
    rank = node.rank(0)
    if node.version >= 6:
        multiples = node.ints(1)
        return _spread(node, Tile(multiples), node.value(0), multiples)
    single = [1] * rank
    single[node.axis(int(node.number(2)), rank)] = int(node.number(1))
    return node.layer(Tile(tuple(single)), node.value(0))


def _spread(node: Node, operation: Operation, value: Value, numbers: Sequence[int]) -> Value:
    """A value repeated; its sizes are read where the numbers that say how often are traced."""
    if any(type(number) is not int for number in numbers):
        value = readable(node, value)
    return node.layer(operation, value)


OPERATORS: OperatorTable = {
    "Reshape": Operator(_reshape, decides=(1,)),
    "Flatten": Operator(_flatten),
    "Squeeze": Operator(_squeeze, decides=(1,)),
    "Unsqueeze": Operator(_unsqueeze, decides=(1,)),
    "Expand": Operator(_expand, decides=(1,)),
    "Transpose": Operator(_transpose),
    "Tile": Operator(_tile, decides=(1, 2)),
}
