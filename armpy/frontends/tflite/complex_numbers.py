"""Tensors of complex numbers, which armpy has no type for.

Notes
-----
Inside a network the two floats of a complex64 are the bits of one uint64: so a tensor keeps its
shape, and what moves elements moves them as any others. What computes with them reads the bits as
pairs of float32 along a last axis, which is also what a model takes and gives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, Converter, ConverterTable, fused_activation
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.joining import Concat
from armpy.ops.movement import BroadcastTo
from armpy.ops.operation import require
from armpy.ops.quantizing import BitCast
from armpy.ops.reshaping import ExpandDims
from armpy.ops.slicing import Gather
from armpy.tensor import TensorInfo
from armpy.types import DataType

CARRIER = DataType.UNSIGNED64
"""Type whose bits are those of a complex64."""

_MOVERS = frozenset(
    (
        "BATCH_TO_SPACE_ND",
        "BROADCAST_TO",
        "DILATE",
        "DYNAMIC_UPDATE_SLICE",
        "EMBEDDING_LOOKUP",
        "EXPAND_DIMS",
        "FILL",
        "HASHTABLE_LOOKUP",
        "IF",
        "MATRIX_DIAG",
        "MATRIX_SET_DIAG",
        "MIRROR_PAD",
        "RANK",
        "RESHAPE",
        "SELECT",
        "SELECT_V2",
        "SHAPE",
        "SLICE",
        "SPACE_TO_BATCH_ND",
        "SQUEEZE",
        "STABLEHLO_COMPOSITE",
        "STABLEHLO_GATHER",
        "STABLEHLO_PAD",
        "STRIDED_SLICE",
        "TILE",
        "TRANSPOSE",
        "WHILE",
    )
)
"""Operators that look at no element."""

_READERS = ("COMPLEX_ABS", "IMAG", "REAL")
"""Operators of one complex tensor that give real ones."""


def pairs(parts: ComposedOperator, value: Value) -> Value:
    """Real and imaginary parts along a last axis of 2, float32."""
    require(
        value.info.data_type is CARRIER,
        "the operator takes complex numbers",
        expected="COMPLEX64",
        actual=value.info.data_type.name,
    )
    return parts.layer(BitCast(DataType.FLOAT32), value)


def part(parts: ComposedOperator, value: Value, index: int) -> Value:
    """Real (0) or imaginary (1) parts of complex numbers."""
    return parts.layer(Gather(-1), pairs(parts, value), parts.constant(np.int64(index)))


def joined(parts: ComposedOperator, real: Value, imaginary: Value) -> Value:
    """Complex numbers of their parts."""
    both = [parts.layer(ExpandDims(-1), value) for value in (real, imaginary)]
    return parts.layer(BitCast(CARRIER), parts.layer(Concat(-1), *both))


def pair_info(shape: Sequence[int | None] | None) -> TensorInfo:
    """Return the description of a model's tensor for one of complex numbers."""
    return TensorInfo(None if shape is None else (*shape, 2), DataType.FLOAT32)


def bits_of(network: Network, value: Value, name: str) -> Value:
    """A model's input of pairs as complex numbers."""
    return network.add(BitCast(CARRIER), value, name=name)


def pairs_of(network: Network, value: Value, name: str) -> Value:
    """Complex numbers as a model's output of pairs."""
    return network.add(BitCast(DataType.FLOAT32), value, name=name)


def converter_for(
    operator: str,
    # `inputs` and `outputs`: which of them are complex.
    inputs: Sequence[bool],
    outputs: Sequence[bool],
    converters: ConverterTable,  # of operators on real numbers
) -> Converter | None:
    """Return the converter of an operator with complex tensors; None if it does not take them."""
    if operator in _MOVERS:
        return converters[operator]
    if operator in _READERS and all(inputs) and not any(outputs):
        return converters[operator]
    if operator == "RFFT2D" and not any(inputs) and all(outputs):
        return converters[operator]
    if operator == "MUL" and all(inputs) and all(outputs):
        return _product
    if operator == "CAST":
        return _to_complex if any(outputs) else _to_real
    return None


def _product(node: BoundOperator) -> Sequence[Value]:
    if fused_activation(node.options("MulOptions")) is not FusedActivation.NONE:
        raise node.error("complex numbers have no activation")

    def expand(parts: ComposedOperator) -> Value:
        (a, b), (c, d) = (
            [part(parts, parts.value(side), index) for index in (0, 1)] for side in (0, 1)
        )

        def combined(function: BinaryOperation, *factors: Value) -> Value:
            times = ElementwiseBinary(BinaryOperation.MUL)
            first, second = parts.layer(times, *factors[:2]), parts.layer(times, *factors[2:])
            return parts.layer(ElementwiseBinary(function), first, second)

        real = combined(BinaryOperation.SUB, a, c, b, d)
        return joined(parts, real, combined(BinaryOperation.ADD, a, d, b, c))

    return composed(node, expand)


def _to_complex(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        real = parts.cast(parts.value(0), DataType.FLOAT32)
        none = parts.layer(BroadcastTo(parts.shape(0)), parts.constant(np.float32(0)))
        return joined(parts, real, none)

    return composed(node, expand)


def _to_real(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        return parts.cast(part(parts, parts.value(0), 0), parts.outputs[0].data_type)

    return composed(node, expand)
