"""Operators that read or write where indices say."""

from __future__ import annotations

from armpy.frontends.onnx.node import Node, Operator, OperatorTable
from armpy.graph import Value
from armpy.ops.slicing import Gather, GatherNd


def _gather(node: Node) -> Value:
    axis = node.axis(node.integer("axis", 0), node.rank(0))
    return node.layer(Gather(axis, wraps_negative=True), node.value(0), node.value(1))


def _gather_nd(node: Node) -> Value:
    batch_dims = node.integer("batch_dims", 0)
    return node.layer(GatherNd(batch_dims, wraps_negative=True), node.value(0), node.value(1))


OPERATORS: OperatorTable = {
    "Gather": Operator(_gather),
    "GatherND": Operator(_gather_nd),
}
