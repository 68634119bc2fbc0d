"""Operators that combine elements along axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy.frontends.tflite.composed import composed
from armpy.frontends.tflite.node import BoundOperator, Converter, ConverterTable
from armpy.graph import Value
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation
from armpy.types import DataType

_LOGICAL = {
    ReduceOperation.MAX: ReduceOperation.ANY,
    ReduceOperation.MIN: ReduceOperation.ALL,
    ReduceOperation.PROD: ReduceOperation.ALL,
    ReduceOperation.SUM: ReduceOperation.ANY,
}
"""Reductions of truth values that stand for those of numbers, as LiteRT computes with them."""

_NARROW = (DataType.SIGNED8, DataType.UNSIGNED8, DataType.SIGNED16)
"""Types that are computed with as wider ones; sums and products wrap around."""


def _reduce(operation: ReduceOperation) -> Converter:

    def convert(node: BoundOperator) -> Sequence[Value]:
        value, chosen = node.input(0), operation
        if value is not None and value.info.data_type is DataType.BOOLEAN:
            chosen = _LOGICAL.get(operation, operation)
        reduce = Reduce(chosen, keep_dims=node.options("ReducerOptions").flag("KeepDims"))
        if value is None or value.info.data_type not in _NARROW:
            return node.layer(reduce, *node.inputs)
        return composed(node, lambda parts: parts.layer(reduce, *parts.inputs))

    return convert


_POSITIONS = {"INT32": DataType.SIGNED32, "INT64": DataType.SIGNED64}


def _arg_min_max(function: ArgMinMaxFunction, options_name: str) -> Converter:
    """Converter of a search; the options say which type the positions have, or else the output."""

    def convert(node: BoundOperator) -> Sequence[Value]:
        node.expect_outputs(1)
        (output,) = node.outputs
        chosen = node.options(options_name).enumerator("OutputType", "TensorType")
        if chosen in _POSITIONS:
            output = replace(output, data_type=_POSITIONS[chosen])
        operation = ArgMinMax(function, output_type=output.data_type)
        return replace(node, outputs=[output]).layer(operation, *node.inputs)

    return convert


CONVERTERS: ConverterTable = {
    "ARG_MAX": _arg_min_max(ArgMinMaxFunction.MAX, "ArgMaxOptions"),
    "ARG_MIN": _arg_min_max(ArgMinMaxFunction.MIN, "ArgMinOptions"),
    "MEAN": _reduce(ReduceOperation.MEAN),
    "REDUCE_ALL": _reduce(ReduceOperation.ALL),
    "REDUCE_ANY": _reduce(ReduceOperation.ANY),
    "REDUCE_MAX": _reduce(ReduceOperation.MAX),
    "REDUCE_MIN": _reduce(ReduceOperation.MIN),
    "REDUCE_PROD": _reduce(ReduceOperation.PROD),
    "SUM": _reduce(ReduceOperation.SUM),
}
