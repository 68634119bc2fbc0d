"""Operators that combine elements along axes."""

from __future__ import annotations

from armpy.frontends.tflite.node import Converter, ConverterTable, Node, direct
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation


def _reduce(operation: ReduceOperation) -> Converter:
    """Converter of a reduction."""

    def make(node: Node) -> Reduce:
        return Reduce(operation, keep_dims=node.options("ReducerOptions").flag("KeepDims"))

    return direct(make)


def _arg_min_max(function: ArgMinMaxFunction) -> Converter:
    """Converter of a search; the output tensor says which type the positions have."""

    def make(node: Node) -> ArgMinMax:
        node.expect_outputs(1)
        return ArgMinMax(function, output_type=node.outputs[0].data_type)

    return direct(make)


CONVERTERS: ConverterTable = {
    "ARG_MAX": _arg_min_max(ArgMinMaxFunction.MAX),
    "ARG_MIN": _arg_min_max(ArgMinMaxFunction.MIN),
    "MEAN": _reduce(ReduceOperation.MEAN),
    "REDUCE_ALL": _reduce(ReduceOperation.ALL),
    "REDUCE_ANY": _reduce(ReduceOperation.ANY),
    "REDUCE_MAX": _reduce(ReduceOperation.MAX),
    "REDUCE_MIN": _reduce(ReduceOperation.MIN),
    "REDUCE_PROD": _reduce(ReduceOperation.PROD),
    "SUM": _reduce(ReduceOperation.SUM),
}
