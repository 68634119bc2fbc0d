"""Operators that make tensors of shapes and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.generation import Fill, OneHot, Range, Rank, Shape


def _one_hot(node: BoundOperator) -> Sequence[Value]:
    operation = OneHot(axis=node.options("OneHotOptions").integer("Axis"))
    return node.layer(operation, node.input(0), node.input(2), node.input(3), node.input(1))


def _range(node: BoundOperator) -> Range:
    node.expect_outputs(1)
    return Range(output_type=node.outputs[0].data_type)


def _shape(node: BoundOperator) -> Shape:
    node.expect_outputs(1)
    return Shape(node.outputs[0].data_type)


CONVERTERS: ConverterTable = {
    "FILL": lambda node: node.layer(Fill(), node.input(1), node.input(0)),
    "ONE_HOT": _one_hot,
    "RANGE": direct(_range),
    "RANK": direct(Rank()),
    "SHAPE": direct(_shape),
}
