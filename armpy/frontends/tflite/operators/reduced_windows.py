"""Operators that combine the elements of windows with a function of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.frontends.tflite.operators.matrices import dilated, padded
from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
)
from armpy.ops.operation import Operation, require
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.slicing import Gather
from armpy.types import DataType

_PAIRS: Mapping[ReduceOperation, Operation] = {
    ReduceOperation.SUM: ElementwiseBinary(BinaryOperation.ADD),
    ReduceOperation.PROD: ElementwiseBinary(BinaryOperation.MUL),
    ReduceOperation.MIN: ElementwiseBinary(BinaryOperation.MINIMUM),
    ReduceOperation.MAX: ElementwiseBinary(BinaryOperation.MAXIMUM),
    ReduceOperation.ALL: LogicalBinary(LogicalBinaryOperation.LOGICAL_AND),
    ReduceOperation.ANY: LogicalBinary(LogicalBinaryOperation.LOGICAL_OR),
}
"""Operation on two elements that each reduction repeats."""

_LOGICAL = {
    ReduceOperation.MAX: ReduceOperation.ANY,
    ReduceOperation.MIN: ReduceOperation.ALL,
    ReduceOperation.PROD: ReduceOperation.ALL,
}
"""Reductions of truth values that stand for those of the numbers 0 and 1."""

_FUNCTIONS = dict(enumerate(_PAIRS, start=1))
"""Reductions by the schema's numbers."""

_BODIES = {
    "ADD": ReduceOperation.SUM,
    "LOGICAL_AND": ReduceOperation.ALL,
    "LOGICAL_OR": ReduceOperation.ANY,
    "MAXIMUM": ReduceOperation.MAX,
    "MINIMUM": ReduceOperation.MIN,
    "MUL": ReduceOperation.PROD,
    "STABLEHLO_ADD": ReduceOperation.SUM,
    "STABLEHLO_MAXIMUM": ReduceOperation.MAX,
    "STABLEHLO_MINIMUM": ReduceOperation.MIN,
    "STABLEHLO_MULTIPLY": ReduceOperation.PROD,
}
"""Reductions by the one operator of the subgraph that says how two elements are combined."""


def _reduced(
    parts: ComposedOperator,
    value: Value,
    function: ReduceOperation,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> Value:
    """Windows of a tensor combined along one axis after the other, and then with input 1.

    The windows are their sizes, strides and dilations. Stored integers are combined whatever their
    scale.
    """
    rank = len(value.info.known_shape)
    fits = all(len(numbers) == rank and min(numbers, default=1) > 0 for numbers in windows)
    require(fits, "there are not a size, a stride and a dilation per axis, all above 0")
    is_logical = value.info.data_type is DataType.BOOLEAN
    function = _LOGICAL.get(function, function) if is_logical else function
    require(is_logical == function.is_logical, "the function does not go with the type")
    value, initial = parts.stored(value), parts.stored(parts.value(1))
    for axis, (size, stride, dilation) in enumerate(zip(*windows, strict=True)):
        length = value.info.known_shape[axis]
        count = max((length - (size - 1) * dilation - 1) // stride + 1, 0)
        if size == 1 and count == length:
            continue
        # Where no window fits, the number of its places, which the model chooses, may be any.
        num_places = size if count else 1
        places = np.add.outer(np.arange(count) * stride, np.arange(num_places) * dilation)
        value = parts.layer(Gather(axis), value, parts.constant(places))
        value = parts.layer(Reduce(function, (axis + 1,)), value)
    combined = parts.layer(_PAIRS[function], value, initial)
    return parts.meaning(combined, parts.value(0))


def _reduce_window(node: BoundOperator) -> Sequence[Value]:
    options = node.options("ReduceWindowOptions", "BuiltinOptions2")
    function = options.choice("ReduceFunction", _FUNCTIONS, "ReduceWindowFunction")

    def expand(parts: ComposedOperator) -> Value:
        windows = (parts.ints(2), parts.ints(3), parts.ints(4))
        return _reduced(parts, parts.value(0), function, windows)

    return composed(node, expand, decides=(2, 3, 4))


def _stablehlo_reduce_window(node: BoundOperator) -> Sequence[Value]:
    options = node.options("StablehloReduceWindowOptions", "BuiltinOptions2")
    names = node.operators(options.integer("BodySubgraphIndex"))
    if len(names) != 1 or names[0] not in _BODIES:
        raise node.error("the subgraph is not supported", actual=", ".join(names))
    sizes, strides, apart, dilations, padding = (
        options.numbers(field)
        for field in (
            "WindowDimensions",
            "WindowStrides",
            "BaseDilations",
            "WindowDilations",
            "Padding",
        )
    )

    def expand(parts: ComposedOperator) -> Value:
        value, initial, rank = parts.value(0), parts.value(1), len(parts.shape(0))
        require(len(apart) == rank and len(padding) == 2 * rank, "the padding has another rank")
        value = dilated(parts, value, apart, initial)
        pairs = list(zip(padding[::2], padding[1::2], strict=True))
        value = padded(parts, value, pairs, initial)
        return _reduced(parts, value, _BODIES[names[0]], (sizes, strides, dilations))

    return composed(node, expand)


CONVERTERS: ConverterTable = {
    "REDUCE_WINDOW": _reduce_window,
    "STABLEHLO_REDUCE_WINDOW": _stablehlo_reduce_window,
}
