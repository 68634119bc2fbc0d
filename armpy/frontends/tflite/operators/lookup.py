"""Operators that look up or order elements, and local response normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.composed import ComposedOperator, composed, moving
from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.frontends.tflite.operators.movement import positions
from armpy.graph import Value
from armpy.ops.lookup import HashtableLookup, LshProjection, LshProjectionType
from armpy.ops.normalization import Normalization
from armpy.ops.ordering import TopkV2
from armpy.types import DataType

_PROJECTIONS = {1: LshProjectionType.SPARSE, 2: LshProjectionType.DENSE}


def _local_response(node: BoundOperator) -> Normalization:
    options = node.options("LocalResponseNormalizationOptions")
    return Normalization(
        radius=options.integer("Radius"),
        alpha=options.real("Alpha"),
        beta=options.real("Beta"),
        k=options.real("Bias"),
    )


def _projection(node: BoundOperator) -> LshProjection:
    options = node.options("LSHProjectionOptions")
    return LshProjection(options.choice("Type", _PROJECTIONS, "LSHProjectionType"))


def _topk(node: BoundOperator) -> Sequence[Value]:
    """Give positions of 16 bits where the file has them."""
    count = positions(node, 1)
    if len(node.outputs) != 2 or node.outputs[1].data_type is not DataType.SIGNED16:
        return node.layer(TopkV2(), node.input(0), count)

    def expand(parts: ComposedOperator) -> Sequence[Value]:
        values, places = parts.layers(TopkV2(), (parts.value(0), count))
        return values, parts.cast(places, DataType.SIGNED16)

    return composed(node, expand)


CONVERTERS: ConverterTable = {
    "HASHTABLE_LOOKUP": direct(HashtableLookup()),
    "LOCAL_RESPONSE_NORMALIZATION": direct(_local_response),
    "LSH_PROJECTION": direct(_projection),
    "TOPK_V2": moving(_topk),
}
