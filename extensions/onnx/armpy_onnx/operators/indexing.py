"""Operators that read or write where indices say."""

from __future__ import annotations

from armpy.graph import SizesValue, Value
from armpy.ops.cumulation import ReverseSequence
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.indexing import GatherElements, ScatterElements, ScatterNd, ScatterReduction
from armpy.ops.operation import Operation, require
from armpy.ops.reshaping import Reshape
from armpy.ops.searching import NonZero
from armpy.ops.slicing import Gather, GatherNd
from armpy.types import DataType
from armpy_onnx.blocks import binary, counted, gathered, reshaped, written_at
from armpy_onnx.node import Node, Operator, OperatorTable


def _gather(node: Node) -> Value:
    axis = node.axis(node.integer("axis", 0), node.rank(0))
    return gathered(node, node.value(0), node.value(1), axis)


def _gather_nd(node: Node) -> Value:
    batch_dims, value, places = node.integer("batch_dims", 0), node.value(0), node.value(1)
    shape = node.shape(1)
    if isinstance(places, SizesValue) and not batch_dims and shape[-1:] == (1,):
        return gathered(node, value, reshaped(node, places, shape[:-1]))
    return node.layer(GatherNd(batch_dims, wraps_negative=True), value, places)


def _gather_elements(node: Node) -> Value:
    axis = node.axis(node.integer("axis", 0), node.rank(0))
    return node.layer(GatherElements(axis, wraps_negative=True), node.value(0), node.value(1))


def _scatter_elements(node: Node) -> Value:
    axis = node.axis(node.integer("axis", 0), node.rank(0))
    reduction = _reduction(node)
    return _scattered(node, ScatterElements(axis, reduction, wraps_negative=True), reduction)


def _scatter_nd(node: Node) -> Value:
    reduction = _reduction(node)
    return _scattered(node, ScatterNd(reduction, wraps_negative=True), reduction)


def _reduction(node: Node) -> ScatterReduction:
    """Return how updates are combined."""
    reductions = {reduction.name.lower(): reduction for reduction in ScatterReduction}
    return node.choice("reduction", "none", reductions)


def _scattered(node: Node, operation: Operation, reduction: ScatterReduction) -> Value:
    """Updates written into the first input; BFLOAT16 is combined in FLOAT32."""
    value, updates = node.value(0), node.value(2)
    if reduction is not ScatterReduction.NONE and node.type(0) is DataType.BFLOAT16:
        value, updates = (node.cast(operand, DataType.FLOAT32) for operand in (value, updates))
    return node.cast(node.layer(operation, value, node.value(1), updates), node.type(0))


def _tensor_scatter(node: Node) -> Value:
    cache, updates = node.shape(0), node.shape(1)
    axis = node.axis(node.integer("axis", -2), len(cache))
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.error(
            "the attribute 'mode' has an unknown value", expected="linear or circular", actual=mode
        )
    require(
        len(updates) == len(cache) and axis > 0 and updates[axis] <= cache[axis],
        "the update has the wrong rank, or is larger than the cache",
        expected=f"rank {len(cache)}, at most {cache[axis]} along axis {axis}, not a batch",
        actual=updates,
    )
    ahead = (1,) * (len(cache) - 1)
    positions = reshaped(node, counted(node, updates[axis]), (updates[axis], *ahead[axis:]))
    if node.has(2):
        starts = reshaped(node, node.cast(node.value(2), DataType.SIGNED64), (-1, *ahead))
        positions = binary(node, BinaryOperation.ADD, starts, positions)
    if mode == "circular":
        positions = binary(node, BinaryOperation.FLOOR_MOD, positions, cache[axis])
    return written_at(node, node.value(0), positions, node.value(1), axis)


def _non_zero(node: Node) -> Value:
    return node.layer(NonZero(), node.value(0))


def _compress(node: Node) -> Value:
    value, shape = node.value(0), node.shape(0)
    if node.attribute("axis") is None:
        value, axis = reshaped(node, value, (-1,)), 0
    else:
        axis = node.axis(node.integer("axis"), len(shape))
    positions = node.layer(NonZero(), node.value(1))
    # One row of positions, whose number depends on the elements.
    return node.layer(Gather(axis), value, node.layer(Reshape((-1,)), positions))


def _reverse_sequence(node: Node) -> Value:
    rank = node.rank(0)
    time = node.axis(node.integer("time_axis", 0), rank)
    batch = node.axis(node.integer("batch_axis", 1), rank)
    return node.layer(ReverseSequence(time, batch), node.value(0), node.value(1))


OPERATORS: OperatorTable = {
    "Gather": Operator(_gather),
    "GatherND": Operator(_gather_nd),
    "GatherElements": Operator(_gather_elements),
    "Scatter": Operator(_scatter_elements),
    "ScatterElements": Operator(_scatter_elements),
    "ScatterND": Operator(_scatter_nd),
    "TensorScatter": Operator(_tensor_scatter),
    "NonZero": Operator(_non_zero, types=(DataType.SIGNED64,)),
    "Compress": Operator(_compress),
    "ReverseSequence": Operator(_reverse_sequence),
}
