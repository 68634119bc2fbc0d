"""Long short-term memories, and detection, which have many stored tensors and several outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import DataType, TensorInfo, ops
from armpy.graph import Value
from armpy.ops import Operation, RecurrentActivation
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter, LayerTable

_ACTIVATIONS: Mapping[int, RecurrentActivation] = {
    activation.value: activation for activation in RecurrentActivation
}


def parameter_name(operand: str) -> str:
    """The format's name of an operand: ``inputToInputWeights`` for ``input_to_input_weights``."""
    first, *others = operand.split("_")
    return first + "".join(word.capitalize() for word in others)


def _is_used(operand: str, flags: Mapping[str, bool]) -> bool:
    """Decide by a layer's flags whether it has an operand."""
    if flags["cifg"] and (
        operand.endswith("_to_input_weights") or operand.startswith(("input_gate", "input_layer"))
    ):
        return False
    if operand.startswith("cell_to_"):
        return flags["peephole"]
    if operand.startswith("projection"):
        return flags["projection"]
    return flags["layer_norm"] if "layer_norm" in operand else True


def _flags(descriptor: LayerTable) -> Mapping[str, bool]:
    return {
        "cifg": descriptor.flag("cifgEnabled"),
        "peephole": descriptor.flag("peepholeEnabled"),
        "projection": descriptor.flag("projectionEnabled"),
        "layer_norm": descriptor.flag("layerNormEnabled"),
    }


def _operands(
    layer: ArmnnLayer,
    operation: Operation,
    connected: Mapping[str, Value],
    flags: Mapping[str, bool],
    *,
    in_floats: bool = False,
) -> list[Value | None]:
    """Connected inputs and stored tensors in the order of the operation."""
    parameters = layer.table.table("inputParams")
    if parameters is None:
        raise layer.error("the layer has no weights")
    parameters.where = layer.table.where
    operands: list[Value | None] = []
    for operand in operation.inputs:
        field = parameter_name(operand.name)
        value = connected.get(operand.name)
        is_stored = value is None and _is_used(operand.name, flags)
        is_left_out = operand.optional and parameters.leaves_out(field) if is_stored else True
        if not is_left_out:
            value = layer.stored(field, parameters)
        if value is not None and in_floats:
            value = layer.decoded(value)
        operands.append(value)
    return operands


def _activation(layer: ArmnnLayer) -> RecurrentActivation:
    number = layer.descriptor.integer("activationFunc")
    if number not in _ACTIVATIONS:
        raise layer.error(
            "the activation function is not supported",
            expected=" or ".join(map(str, _ACTIVATIONS)),
            actual=number,
        )
    return _ACTIVATIONS[number]


def _states(layer: ArmnnLayer) -> dict[str, Value]:
    layer.expect_inputs(3)
    names = ("input", "output_state_in", "cell_state_in")
    return dict(zip(names, layer.inputs, strict=True))


def _added(
    layer: ArmnnLayer,
    operation: Operation,
    operands: Sequence[Value | None],
    *,
    in_floats: bool = False,
) -> Sequence[Value]:
    """Add the layer with all of its outputs."""
    layer.expect_outputs(operation.num_outputs)
    declared = [info and info.with_shape(None) for info in layer.outputs]
    float32: list[TensorInfo | None] = [TensorInfo(None, DataType.FLOAT32)] * len(declared)
    outputs = float32 if in_floats else declared
    values = layer.network.add_layer(operation, operands, name=layer.name, outputs=outputs).outputs
    if not in_floats:
        return values
    return [layer.encoded(value, info) for value, info in zip(values, declared, strict=True)]


def _computes_in_floats(layer: ArmnnLayer) -> bool:
    """Quantised inputs of layers that Arm NN's reference backend computes in float32."""
    return layer.inputs[0].info.data_type is not DataType.FLOAT16


def _lstm(layer: ArmnnLayer) -> Sequence[Value]:
    connected, descriptor = _states(layer), layer.descriptor
    operation = ops.Lstm(
        _activation(layer),
        descriptor.real("clippingThresCell"),
        descriptor.real("clippingThresProj"),
    )
    in_floats = _computes_in_floats(layer)
    operands = _operands(layer, operation, connected, _flags(descriptor), in_floats=in_floats)
    return _added(layer, operation, operands, in_floats=in_floats)


def _unidirectional_sequence_lstm(layer: ArmnnLayer) -> Sequence[Value]:
    connected, descriptor = _states(layer), layer.descriptor
    operation = ops.UnidirectionalSequenceLstm(
        _activation(layer),
        descriptor.real("clippingThresCell"),
        descriptor.real("clippingThresProj"),
        descriptor.flag("timeMajor"),
    )
    in_floats = _computes_in_floats(layer)
    operands = _operands(layer, operation, connected, _flags(descriptor), in_floats=in_floats)
    return _added(layer, operation, operands, in_floats=in_floats)


def _q_lstm(layer: ArmnnLayer) -> Sequence[Value]:
    connected, descriptor = _states(layer), layer.descriptor
    operation = ops.QLstm(
        descriptor.real("cellClip"),
        descriptor.real("projectionClip"),
        descriptor.real("inputIntermediateScale"),
        descriptor.real("forgetIntermediateScale"),
        descriptor.real("cellIntermediateScale"),
        descriptor.real("outputIntermediateScale"),
        descriptor.integer("hiddenStateZeroPoint"),
        descriptor.real("hiddenStateScale"),
    )
    return _added(layer, operation, _operands(layer, operation, connected, _flags(descriptor)))


def _quantized_lstm(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(3)
    names = ("input", "cell_state_in", "output_state_in")
    connected = dict(zip(names, layer.inputs, strict=True))
    flags = {"cifg": False, "peephole": False, "projection": False, "layer_norm": False}
    operation = ops.QuantizedLstm()
    return _added(layer, operation, _operands(layer, operation, connected, flags))


def _detection_post_process(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    descriptor = layer.descriptor
    operation = ops.DetectionPostProcess(
        descriptor.integer("maxDetections"),
        descriptor.integer("maxClassesPerDetection"),
        descriptor.integer("detectionsPerClass"),
        descriptor.real("nmsScoreThreshold"),
        descriptor.real("nmsIouThreshold"),
        descriptor.integer("numClasses"),
        descriptor.flag("useRegularNms"),
        descriptor.real("scaleY"),
        descriptor.real("scaleX"),
        descriptor.real("scaleH"),
        descriptor.real("scaleW"),
    )
    return _added(layer, operation, (*layer.inputs, layer.stored("anchors")))


CONVERTERS: Mapping[str, Converter] = {
    "DetectionPostProcess": _detection_post_process,
    "Lstm": _lstm,
    "QLstm": _q_lstm,
    "QuantizedLstm": _quantized_lstm,
    "UnidirectionalSequenceLstm": _unidirectional_sequence_lstm,
}
