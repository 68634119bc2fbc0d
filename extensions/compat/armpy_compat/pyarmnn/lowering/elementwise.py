"""Layers that compute each element from one element of every input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from armpy import ops
from armpy.graph import Value
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering


def _binary(operation: ops.BinaryOperation, lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.ElementwiseBinary(operation), *_same_rank(lowered))


def _same_rank(lowered: LoweredLayer) -> list[Value]:
    """Both inputs with as many dimensions as the one that has more, as Arm NN reshapes them."""
    rank = max(len(value.info.known_shape) for value in lowered.inputs)
    return [
        value
        if len(value.info.known_shape) == rank
        else lowered.add(
            ops.Reshape((1,) * (rank - len(value.info.known_shape)) + value.info.known_shape),
            value,
        )
        for value in lowered.inputs
    ]


def _described_binary(lowered: LoweredLayer) -> Sequence[Value]:
    return _binary(ops.BinaryOperation(lowered.descriptor.m_Operation), lowered)


def _activation(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.Activation(ops.ActivationFunction(d.m_Function), d.m_A, d.m_B)
    return lowered.result(operation, *lowered.inputs)


def _unary(lowered: LoweredLayer) -> Sequence[Value]:
    operation = ops.ElementwiseUnary(ops.UnaryOperation(lowered.descriptor.m_Operation))
    return lowered.result(operation, *lowered.inputs)


def _comparison(lowered: LoweredLayer) -> Sequence[Value]:
    operation = ops.Comparison(ops.ComparisonOperation(lowered.descriptor.m_Operation))
    return lowered.result(operation, *_same_rank(lowered))


def _logical_binary(lowered: LoweredLayer) -> Sequence[Value]:
    operation = ops.LogicalBinary(ops.LogicalBinaryOperation(lowered.descriptor.m_Operation))
    return lowered.result(operation, *_same_rank(lowered))


def _plain(make: Callable[[], ops.Operation], lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(make(), *lowered.inputs)


def _floor(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.ElementwiseUnary(ops.UnaryOperation.FLOOR), *lowered.inputs)


ELEMENTWISE: Mapping[str, Lowering] = {
    "Activation": _activation,
    "Addition": partial(_binary, ops.BinaryOperation.ADD),
    "Cast": partial(_plain, ops.Cast),
    "Comparison": _comparison,
    "Dequantize": partial(_plain, ops.Dequantize),
    "Division": partial(_binary, ops.BinaryOperation.DIV),
    "ElementwiseBinary": _described_binary,
    "ElementwiseUnary": _unary,
    "Floor": _floor,
    "LogicalBinary": _logical_binary,
    "Maximum": partial(_binary, ops.BinaryOperation.MAXIMUM),
    "Minimum": partial(_binary, ops.BinaryOperation.MINIMUM),
    "Multiplication": partial(_binary, ops.BinaryOperation.MUL),
    "Prelu": partial(_plain, ops.Prelu),
    "Quantize": partial(_plain, ops.Quantize),
    "Subtraction": partial(_binary, ops.BinaryOperation.SUB),
}
"""How layers that work element by element are made, by kind."""
