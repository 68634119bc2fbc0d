"""Folding of what networks compute from their shapes, while these are traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from armpy.compiler.folding.constants import Evaluator
from armpy.core.symbolic import computed, elements_of
from armpy.graph import SIZE_TYPES, SizesValue, Value
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    Select,
)
from armpy.ops.joining import Concat, Stack
from armpy.ops.movement import BroadcastTo, ReverseV2, Tile, Transpose
from armpy.ops.operation import Array, Operation
from armpy.ops.quantizing import Cast
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze
from armpy.ops.slicing import Gather, GatherNd, Slice, Splitter, Unstack
from armpy.ops.strided_slicing import StridedSlice
from armpy.tensor import TensorInfo
from armpy.types import DataType

_MOVING = (
    *(BroadcastTo, Cast, Concat, ExpandDims, Gather, GatherNd, Reshape, ReverseV2, Select, Slice),
    *(Splitter, Squeeze, Stack, StridedSlice, Tile, Transpose, Unstack),
)
"""Each element of an output is one of an input, whatever that is."""

_INDEXED = (Gather, GatherNd)
"""Elements of other inputs than the first one say where."""

_FIRST = 1 << 30
"""Numbers from here on stand for sizes in moved expressions: a network has no such sizes."""

_MOST = 1 << 16
"""Elements: shapes have few, and tables that are made of sizes are computed from plain numbers."""


def fold_sizes(
    evaluator: Evaluator,
    operation: Operation,
    inputs: Sequence[Value | None],
    outputs: Sequence[TensorInfo],
) -> list[Array] | None:
    """Elements of an operation's outputs, from traced sizes among its inputs.

    Returns
    -------
    list of ndarray, or None
        Of objects where sizes are among them. None if the operation is none of those that
        shapes are computed with: it has to be computed from plain numbers.
    """
    if not all(value is None or value.is_constant for value in inputs):
        return None
    if not all(
        info.is_fully_shaped and np.prod(info.known_shape, dtype=object) <= _MOST
        for info in outputs
    ):
        return None
    types = {value.info.data_type for value in inputs if isinstance(value, SizesValue)}
    if not types.issubset(SIZE_TYPES):
        return None
    if isinstance(operation, _MOVING):
        return _moved(evaluator, operation, inputs, outputs)
    arrays = [_elements(value) for value in inputs if value is not None]
    if isinstance(operation, Comparison):
        return [np.asarray(_COMPARED[operation.operation](*arrays), bool)]
    folded: Array | None = None
    if isinstance(operation, ElementwiseBinary):
        if operation.activation is FusedActivation.NONE:
            folded = _binary(operation.operation, *arrays)
    elif isinstance(operation, Reduce):
        folded = _reduced(operation, arrays[0], outputs[0])
    if folded is None:
        return None
    elements, output = folded.reshape(-1).tolist(), outputs[0]
    return [_array(elements, folded.shape, output.data_type)] if _fits(elements, output) else None


def _elements(value: Value) -> Array:
    """A constant's elements, sizes as they are."""
    if isinstance(value, SizesValue):
        return value.sizes
    assert value.data is not None
    return value.data


def _moved(
    evaluator: Evaluator,
    operation: Operation,
    inputs: Sequence[Value | None],
    outputs: Sequence[TensorInfo],
) -> list[Array] | None:
    """Outputs whose elements are those of inputs: numbers are moved in the place of sizes."""
    if any(info.data_type not in SIZE_TYPES for info in outputs):
        return None
    if isinstance(operation, _INDEXED) and any(isinstance(v, SizesValue) for v in inputs[1:]):
        return None
    sizes: list[int] = []
    operands: list[Value | None] = []
    for value in inputs:
        if not isinstance(value, SizesValue):
            # A plain number that stands for a size would be taken for it.
            if value is not None and value.data is not None and (value.data >= _FIRST).any():
                return None
            operands.append(value)
            continue
        first = _FIRST + len(sizes)
        sizes += value.sizes.flat
        numbers = np.arange(first, first + value.sizes.size).reshape(value.sizes.shape)
        dtype = value.info.data_type.dtype
        operands.append(Value(value.id, value.info, value.name, numbers.astype(dtype)))
    moved = evaluator.fold(operation, operands, outputs, 16 * _MOST)
    if moved is None:
        return None
    arrays = []
    for array, info in zip(moved, outputs, strict=True):
        elements = [sizes[n - _FIRST] if n >= _FIRST else n for n in array.reshape(-1).tolist()]
        if not _fits(elements, info):  # as after a cast
            return None
        arrays.append(_array(elements, array.shape, info.data_type))
    return arrays


def _array(elements: Sequence[int], shape: tuple[int, ...], data_type: DataType) -> Array:
    """Elements in an array of a type, or of objects if sizes are among them."""
    return elements_of(elements, data_type.dtype).reshape(shape)


def _binary(operation: BinaryOperation, left: Array, right: Array) -> Array | None:
    """Compute arithmetic of sizes; None for other operations."""
    function = _ARITHMETIC.get(operation)
    if function is None:
        return None
    if operation in _DIVIDING and not (np.all(left >= 0) and np.all(right > 0)):
        return None  # rounded towards zero, which is down for these alone
    return np.asarray(function(left, right), object)


def _reduced(operation: Reduce, array: Array, output: TensorInfo) -> Array | None:
    """Sum, product or extreme along axes."""
    function = _REDUCED.get(operation.operation)
    if function is None:
        return None
    axes = range(array.ndim) if operation.axes is None else operation.axes
    reduced = function.reduce(array, axis=tuple({axis % array.ndim for axis in axes}))
    return np.asarray(reduced, object).reshape(output.known_shape)


def _fits(elements: Sequence[int], output: TensorInfo) -> bool:
    """Return whether integers of the output's type hold all elements, which becomes a condition."""
    if output.data_type not in SIZE_TYPES:
        return False
    low, high = output.data_type.integer_range
    return all(low <= element <= high for element in elements)


# NumPy's would compare sizes, and the results hold for one order of them alone.
_LARGER, _SMALLER = (
    np.frompyfunc(partial(computed, choice), 2, 1, identity=None) for choice in (max, min)
)
_ARITHMETIC: MappingProxyType[BinaryOperation, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        BinaryOperation.ADD: np.add,
        BinaryOperation.SUB: np.subtract,
        BinaryOperation.MUL: np.multiply,
        BinaryOperation.DIV: np.floor_divide,
        BinaryOperation.FLOOR_DIV: np.floor_divide,
        BinaryOperation.FLOOR_MOD: np.remainder,
        BinaryOperation.TRUNC_MOD: np.remainder,
        BinaryOperation.MAXIMUM: _LARGER,
        BinaryOperation.MINIMUM: _SMALLER,
    }
)
_DIVIDING = (
    BinaryOperation.DIV,
    BinaryOperation.FLOOR_DIV,
    BinaryOperation.FLOOR_MOD,
    BinaryOperation.TRUNC_MOD,
)
_REDUCED: MappingProxyType[ReduceOperation, np.ufunc] = MappingProxyType(
    {
        ReduceOperation.SUM: np.add,
        ReduceOperation.PROD: np.multiply,
        ReduceOperation.MAX: _LARGER,
        ReduceOperation.MIN: _SMALLER,
    }
)
_COMPARED: MappingProxyType[ComparisonOperation, Callable[[Array, Array], Array]] = (
    MappingProxyType(
        {
            ComparisonOperation.EQUAL: np.equal,
            ComparisonOperation.NOT_EQUAL: np.not_equal,
            ComparisonOperation.LESS: np.less,
            ComparisonOperation.LESS_OR_EQUAL: np.less_equal,
            ComparisonOperation.GREATER: np.greater,
            ComparisonOperation.GREATER_OR_EQUAL: np.greater_equal,
        }
    )
)
