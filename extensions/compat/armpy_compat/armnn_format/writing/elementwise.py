"""Writes layers that compute each output element from one element of every input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from armpy import ops
from armpy.graph import Layer
from armpy.ops import FusedActivation, UnaryOperation
from armpy.plugins.hooks.flatbuffers import Field
from armpy_compat.armnn_format.layers.elementwise import ACTIVATIONS, BINARY, LOGICAL, UNARY
from armpy_compat.armnn_format.writing.file_writer import ArmnnWriter, Slot, layer_error

Emit = Callable[[ArmnnWriter, Layer], Sequence[Slot]]
"""Adds what a layer is in the format, and returns the slots of its outputs."""

_UNARY_NUMBERS = {operation: number for number, operation in UNARY.items()}


def plain(kind: str) -> Emit:
    """Write a layer without attributes."""

    def emit(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
        inputs = [value for value in layer.inputs if value is not None]
        return writer.put(kind, layer.name, inputs, layer.output_infos)

    return emit


def described(
    writer: ArmnnWriter, layer: Layer, kind: str, fields: Mapping[str, Field]
) -> Sequence[Slot]:
    """Write a layer with a descriptor that is called as its kind."""
    inputs = [value for value in layer.inputs if value is not None]
    return writer.put(
        kind, layer.name, inputs, layer.output_infos, descriptor=(f"{kind}Descriptor", fields)
    )


def _activation(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Activation)
    if operation.function not in ACTIVATIONS.values() or operation.approximate:
        raise layer_error(layer, "the .armnn format does not have the function")
    fields: dict[str, Field] = {
        "activationFunction": operation.function.value,
        "a": operation.a,
        "b": operation.b,
    }
    return described(writer, layer, "Activation", fields)


def _binary(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.ElementwiseBinary)
    if operation.operation not in BINARY.values() or operation.power_of_two_scales:
        raise layer_error(layer, f"the .armnn format has no {operation.operation.name} of its kind")
    (slot,) = described(
        writer, layer, "ElementwiseBinary", {"operation": operation.operation.value}
    )
    return (writer.activated(layer, slot, operation.activation),)


def _unary(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.ElementwiseUnary)
    if operation.operation is UnaryOperation.FLOOR:
        return plain("Floor")(writer, layer)
    if operation.operation not in _UNARY_NUMBERS:
        raise layer_error(layer, f"the .armnn format has no {operation.operation.name}")
    fields: dict[str, Field] = {"operation": _UNARY_NUMBERS[operation.operation]}
    return described(writer, layer, "ElementwiseUnary", fields)


def _comparison(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Comparison)
    lhs, rhs = (layer[name].info for name in ("lhs", "rhs"))
    if lhs.data_type.is_quantized and lhs.quantization != rhs.quantization:
        raise layer_error(layer, "Arm NN compares real numbers, not rescaled integers")
    return described(writer, layer, "Comparison", {"operation": operation.operation.value})


def _logical(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.LogicalBinary)
    if operation.operation not in LOGICAL.values():
        raise layer_error(layer, f"the .armnn format has no {operation.operation.name}")
    return described(writer, layer, "LogicalBinary", {"operation": operation.operation.value})


def _quantize(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Quantize)
    if operation.rounds_to_even:
        raise layer_error(layer, "Arm NN rounds halves away from zero")
    return plain("Quantize")(writer, layer)


def no_activation(layer: Layer, activation: FusedActivation) -> None:
    """Refuse an activation function that cannot follow the layer."""
    if activation is not FusedActivation.NONE:
        raise layer_error(layer, "its activation function cannot be written")


EMITTERS: Mapping[str, Emit] = {
    "Activation": _activation,
    "Cast": plain("Cast"),
    "Comparison": _comparison,
    "Dequantize": plain("Dequantize"),
    "ElementwiseBinary": _binary,
    "ElementwiseUnary": _unary,
    "LogicalBinary": _logical,
    "Prelu": plain("Prelu"),
    "Quantize": _quantize,
}
