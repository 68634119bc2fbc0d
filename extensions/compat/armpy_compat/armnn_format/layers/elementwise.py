"""Layers that compute each output element from one element of every input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import DataType, ops
from armpy.graph import Value
from armpy.ops import (
    ActivationFunction,
    BinaryOperation,
    ComparisonOperation,
    LogicalBinaryOperation,
    UnaryOperation,
)
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter

ACTIVATIONS: Mapping[int, ActivationFunction] = {
    function.value: function
    for function in ActivationFunction
    if function.value <= ActivationFunction.GELU.value  # Arm NN's last; later ones are armpy's
}
BINARY: Mapping[int, BinaryOperation] = {
    operation.value: operation
    for operation in (
        BinaryOperation.ADD,
        BinaryOperation.DIV,
        BinaryOperation.MAXIMUM,
        BinaryOperation.MINIMUM,
        BinaryOperation.MUL,
        BinaryOperation.SUB,
        BinaryOperation.SQUARED_DIFFERENCE,
        BinaryOperation.POWER,
    )
}
UNARY: Mapping[int, UnaryOperation] = dict(
    enumerate(
        (
            UnaryOperation.ABS,
            UnaryOperation.RSQRT,
            UnaryOperation.SQRT,
            UnaryOperation.EXP,
            UnaryOperation.NEG,
            UnaryOperation.LOGICAL_NOT,
            UnaryOperation.LOG,
            UnaryOperation.SIN,
            UnaryOperation.CEIL,
        )
    )
)
"""Operations by the format's numbers, which are not those of Arm NN."""
COMPARISONS: Mapping[int, ComparisonOperation] = {
    operation.value: operation for operation in ComparisonOperation
}
LOGICAL: Mapping[int, LogicalBinaryOperation] = {
    0: LogicalBinaryOperation.LOGICAL_AND,
    1: LogicalBinaryOperation.LOGICAL_OR,
}


def _activation(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    function = descriptor.choice("activationFunction", ACTIVATIONS, "ActivationFunction")
    operation = ops.Activation(function, descriptor.real("a"), descriptor.real("b"))
    return (layer.add(operation, layer.inputs[0]),)


def _binary(operation: BinaryOperation) -> Converter:
    """Convert one of the layers of old files that stand for a single function."""

    def convert(layer: ArmnnLayer) -> Sequence[Value]:
        layer.expect_inputs(2)
        return (layer.add(ops.ElementwiseBinary(operation), *layer.inputs),)

    return convert


def _elementwise_binary(layer: ArmnnLayer) -> Sequence[Value]:
    return _binary(layer.descriptor.choice("operation", BINARY, "BinaryOperation"))(layer)


def _unary(operation: UnaryOperation) -> Converter:
    """Convert one of the layers of old files that stand for a single function."""

    def convert(layer: ArmnnLayer) -> Sequence[Value]:
        layer.expect_inputs(1)
        return (layer.add(ops.ElementwiseUnary(operation), layer.inputs[0]),)

    return convert


def _elementwise_unary(layer: ArmnnLayer) -> Sequence[Value]:
    return _unary(layer.descriptor.choice("operation", UNARY, "UnaryOperation"))(layer)


def _comparing(operation: ComparisonOperation) -> Converter:
    """Compare real numbers: inputs of two quantisations are dequantised first."""

    def convert(layer: ArmnnLayer) -> Sequence[Value]:
        layer.expect_inputs(2)
        inputs = list(layer.inputs)
        infos = [value.info for value in inputs]
        if infos[0].data_type.is_quantized and infos[0].quantization != infos[1].quantization:
            inputs = [layer.decoded(value) for value in inputs]
        return (layer.add(ops.Comparison(operation), *inputs),)

    return convert


def _comparison(layer: ArmnnLayer) -> Sequence[Value]:
    operation = layer.descriptor.choice("operation", COMPARISONS, "ComparisonOperation")
    return _comparing(operation)(layer)


def _logical_binary(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    operation = layer.descriptor.choice("operation", LOGICAL, "LogicalBinaryOperation")
    return (layer.add(ops.LogicalBinary(operation), *layer.inputs),)


def _prelu(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    return (layer.add(ops.Prelu(), *layer.inputs),)


def _cast(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    return (layer.add(ops.Cast(), layer.inputs[0]),)


def _quantize(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    return (layer.add(ops.Quantize(), layer.inputs[0]),)


def _dequantize(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    return (layer.add(ops.Dequantize(), layer.inputs[0]),)


def _stand_in(layer: ArmnnLayer) -> Sequence[Value]:
    """Keep a layer that none of Arm NN's own backends runs, for a backend that does."""
    declared = layer.outputs
    if not declared:
        raise layer.error("the layer has no output")
    operation = ops.StandIn(layer.kind, num_results=len(declared))
    return layer.network.add_layer(
        operation, layer.inputs, name=layer.name, outputs=declared
    ).outputs


def _floor(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    value = layer.inputs[0]
    if value.info.data_type is DataType.SIGNED32:
        return (value,)
    return (layer.add(ops.ElementwiseUnary(UnaryOperation.FLOOR), value),)


CONVERTERS: Mapping[str, Converter] = {
    "Abs": _unary(UnaryOperation.ABS),
    "Activation": _activation,
    "Addition": _binary(BinaryOperation.ADD),
    "Cast": _cast,
    "Comparison": _comparison,
    "Dequantize": _dequantize,
    "Division": _binary(BinaryOperation.DIV),
    "ElementwiseBinary": _elementwise_binary,
    "ElementwiseUnary": _elementwise_unary,
    "Equal": _comparing(ComparisonOperation.EQUAL),
    "Floor": _floor,
    "Greater": _comparing(ComparisonOperation.GREATER),
    "LogicalBinary": _logical_binary,
    "Maximum": _binary(BinaryOperation.MAXIMUM),
    "Merge": _stand_in,
    "Minimum": _binary(BinaryOperation.MINIMUM),
    "Multiplication": _binary(BinaryOperation.MUL),
    "Prelu": _prelu,
    "Quantize": _quantize,
    "Rsqrt": _unary(UnaryOperation.RSQRT),
    "StandIn": _stand_in,
    "Subtraction": _binary(BinaryOperation.SUB),
    "Switch": _stand_in,
}
