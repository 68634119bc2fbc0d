"""Operators that look up or order elements, and local response normalisation."""

from __future__ import annotations

from armpy.frontends.tflite.node import ConverterTable, Node, direct
from armpy.ops.lookup import HashtableLookup, LshProjection, LshProjectionType
from armpy.ops.normalization import Normalization
from armpy.ops.ordering import TopkV2

_PROJECTIONS = {1: LshProjectionType.SPARSE, 2: LshProjectionType.DENSE}


def _local_response(node: Node) -> Normalization:
    options = node.options("LocalResponseNormalizationOptions")
    return Normalization(
        radius=options.integer("Radius"),
        alpha=options.real("Alpha"),
        beta=options.real("Beta"),
        k=options.real("Bias"),
    )


def _projection(node: Node) -> LshProjection:
    options = node.options("LSHProjectionOptions")
    return LshProjection(options.choice("Type", _PROJECTIONS, "LSHProjectionType"))


CONVERTERS: ConverterTable = {
    "HASHTABLE_LOOKUP": direct(HashtableLookup()),
    "LOCAL_RESPONSE_NORMALIZATION": direct(_local_response),
    "LSH_PROJECTION": direct(_projection),
    "TOPK_V2": direct(TopkV2()),
}
