"""Writes layers that normalise, and the recurrent ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import DataLayout, ops
from armpy.graph import Layer
from armpy.plugins.hooks.flatbuffers import Field, FlatTable
from armpy_compat.armnn_format.layers.recurrent import parameter_name
from armpy_compat.armnn_format.writing.elementwise import Emit, described
from armpy_compat.armnn_format.writing.file_writer import (
    ArmnnWriter,
    Slot,
    constant_of,
    layer_error,
    stored_table,
)
from armpy_compat.armnn_format.writing.weighted import LAYOUT_NUMBERS

_CONNECTED = ("input", "output_state_in", "cell_state_in")


def _softmax(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Softmax | ops.LogSoftmax)
    fields: dict[str, Field] = {"beta": operation.beta, "axis": operation.axis}
    return described(writer, layer, operation.name, fields)


def _l2_normalization(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.L2Normalization)
    layout = _layout_of(layer, operation.axis)
    fields: dict[str, Field] = {"dataLayout": LAYOUT_NUMBERS[layout], "eps": operation.epsilon}
    return described(writer, layer, "L2Normalization", fields)


def _layout_of(layer: Layer, axis: int) -> DataLayout:
    """The layout whose channels are at an axis."""
    rank = layer["input"].info.rank
    if rank is not None and axis % rank == rank - 1:
        return DataLayout.NHWC
    if rank is not None and rank >= 3 and axis % rank == rank - 3:
        return DataLayout.NCHW
    raise layer_error(layer, "its axis is that of the channels in no layout")


def _instance_normalization(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.InstanceNormalization)
    fields: dict[str, Field] = {
        "gamma": operation.gamma,
        "beta": operation.beta,
        "eps": operation.eps,
        "dataLayout": LAYOUT_NUMBERS[operation.data_layout],
    }
    return described(writer, layer, "InstanceNormalization", fields)


def _normalization(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Normalization)
    rank = layer["input"].info.rank or 0
    axes = tuple(sorted(axis % rank for axis in operation.axes)) if rank else ()
    is_across = len(axes) == 1
    if rank != 4 or axes not in ((1,), (3,), (1, 2), (2, 3)):
        raise layer_error(layer, "its axes are neither the channels nor the spatial axes")
    layout = DataLayout.NCHW if axes in ((1,), (2, 3)) else DataLayout.NHWC
    fields: dict[str, Field] = {
        "normChannelType": 0 if is_across else 1,
        "normSize": 2 * operation.radius + 1,
        "alpha": operation.alpha,
        "beta": operation.beta,
        "k": operation.k,
        "dataLayout": LAYOUT_NUMBERS[layout],
    }
    return described(writer, layer, "Normalization", fields)


def _parameters(layer: Layer, connected: Sequence[str]) -> dict[str, Field]:
    """The table of stored tensors of a long short-term memory."""
    tensors: dict[str, Field] = {}
    for operand in layer.operation.inputs:
        value = layer.operand(operand.name)
        if value is not None and operand.name not in connected:
            data = np.asarray(constant_of(layer, value, f"{operand.name} elements").data)
            tensors[parameter_name(operand.name)] = stored_table(data, value.info, value.name)
    return tensors


def _flags(layer: Layer) -> dict[str, Field]:
    return {
        "cifgEnabled": layer.operand("input_to_input_weights") is None,
        "peepholeEnabled": layer.operand("cell_to_forget_weights") is not None,
        "projectionEnabled": layer.operand("projection_weights") is not None,
        "layerNormEnabled": layer.operand("forget_layer_norm_weights") is not None,
    }


def _lstm(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Lstm | ops.UnidirectionalSequenceLstm)
    if any(info.data_type.is_quantized for info in layer.output_infos):
        raise layer_error(layer, "the .armnn format has no scales of its gates")
    fields: dict[str, Field] = {
        "activationFunc": operation.activation.value,
        "clippingThresCell": operation.cell_clip,
        "clippingThresProj": operation.projection_clip,
        **_flags(layer),
    }
    if isinstance(operation, ops.UnidirectionalSequenceLstm):
        fields["timeMajor"] = operation.time_major
    return _recurrent(writer, layer, "LstmInputParams", _CONNECTED, fields)


def _q_lstm(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.QLstm)
    names = [name for name in operation.attributes() if name not in ("activation",)]
    fields: dict[str, Field] = {
        **{parameter_name(name): operation.attributes()[name] for name in names},
        **_flags(layer),
    }
    return _recurrent(writer, layer, "QLstmInputParams", _CONNECTED, fields)


def _quantized_lstm(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    connected = ("input", "cell_state_in", "output_state_in")
    return _recurrent(writer, layer, "QuantizedLstmInputParams", connected, None)


def _recurrent(
    writer: ArmnnWriter,
    layer: Layer,
    table: str,
    connected: Sequence[str],
    fields: Mapping[str, Field] | None,
) -> Sequence[Slot]:
    kind = layer.operation.name
    return writer.put(
        kind,
        layer.name,
        [layer[name] for name in connected],
        layer.output_infos,
        {"inputParams": FlatTable(table, _parameters(layer, connected))},
        descriptor=None if fields is None else (f"{kind}Descriptor", fields),
    )


def _detection(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.DetectionPostProcess)
    if operation.background_in_labels or operation.strict_thresholds or operation.compact_rows:
        raise layer_error(layer, "the .armnn format has detection in TFLite's form only")
    columns = (layer["scores"].info.shape or (None,) * 3)[2]
    classes = operation.num_classes
    if classes is None and columns is None:
        raise layer_error(layer, "its number of classes is not known")
    anchors = constant_of(layer, layer["anchors"], "anchors")
    fields: dict[str, Field] = {
        "maxDetections": operation.max_detections,
        "maxClassesPerDetection": operation.max_classes_per_detection,
        "detectionsPerClass": operation.detections_per_class,
        "nmsScoreThreshold": operation.nms_score_threshold,
        "nmsIouThreshold": operation.nms_iou_threshold,
        "numClasses": classes if classes is not None else (columns or 1) - 1,
        "useRegularNms": operation.use_regular_nms,
        "scaleX": operation.scale_x,
        "scaleY": operation.scale_y,
        "scaleW": operation.scale_w,
        "scaleH": operation.scale_h,
    }
    return writer.put(
        "DetectionPostProcess",
        layer.name,
        (layer["box_encodings"], layer["scores"]),
        layer.output_infos,
        {"anchors": stored_table(np.asarray(anchors.data), anchors.info, anchors.name)},
        descriptor=("DetectionPostProcessDescriptor", fields),
    )


EMITTERS: Mapping[str, Emit] = {
    "DetectionPostProcess": _detection,
    "InstanceNormalization": _instance_normalization,
    "L2Normalization": _l2_normalization,
    "LogSoftmax": _softmax,
    "Lstm": _lstm,
    "Normalization": _normalization,
    "QLstm": _q_lstm,
    "QuantizedLstm": _quantized_lstm,
    "Softmax": _softmax,
    "UnidirectionalSequenceLstm": _lstm,
}
