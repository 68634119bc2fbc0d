"""Operators that TensorFlow Lite computes on stored integers, whatever scales these have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.frontends.tflite.composed import STORED
from armpy.frontends.tflite.node import BoundOperator, Converter
from armpy.graph import Value
from armpy.ops.quantizing import BitCast
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

_DATA_INPUTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "DEPTH_TO_SPACE",
            "GATHER",
            "GATHER_ND",
            "MATRIX_DIAG",
            "MAX_POOL_2D",
            "RESHAPE",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
            "REVERSE_SEQUENCE",
            "REVERSE_V2",
            "SLICE",
            "SPACE_TO_DEPTH",
            "SPLIT_V",
            "SQUEEZE",
            "STRIDED_SLICE",
            "TILE",
            "TOPK_V2",
            "TRANSPOSE",
        ),
        (0,),
    ),
    **dict.fromkeys(
        ("DYNAMIC_UPDATE_SLICE", "MATRIX_SET_DIAG", "MAXIMUM", "MINIMUM"),
        (0, 1),
    ),
    "SELECT": (1, 2),
    "SELECT_V2": (1, 2),
    "SPLIT": (1,),
}
"""Inputs with the elements that go to the output. The operators that are left out rescale them, or
TensorFlow Lite refuses different scales."""

_ALWAYS_SCALED = ("MAX_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
"""Operators that armpy has for floats and quantised numbers alone."""

_QUANTIZED = {plain: quantized for quantized, plain in STORED.items()}


def on_stored_elements(node: BoundOperator, converter: Converter) -> Sequence[Value]:
    """Convert an operator; if it moves integers between scales, these stay as they are stored."""
    places = [p for p in _DATA_INPUTS.get(node.operator, ()) if node.input(p) is not None]
    inputs = list(node.inputs)
    infos = [value.info for p in places if (value := inputs[p]) is not None] + [*node.outputs[:1]]
    common = _common_type(node.operator, infos) if places and node.outputs else None
    if common is None:
        return converter(node)
    for place in places:
        value = inputs[place]
        assert value is not None  # as `places` says
        inputs[place] = _with_type(node, value, common, f"in_{place}")
    outputs = [common if _stored(info) is _stored(common) else info for info in node.outputs]
    names = [f"{name}:stored" for name in node.output_names]
    results = converter(replace(node, inputs=inputs, outputs=outputs, output_names=names))
    return [
        _with_type(node, result, info, f"out_{i}")
        for i, (result, info) in enumerate(zip(results, node.outputs, strict=True))
    ]


def _common_type(operator: str, infos: Sequence[TensorInfo]) -> TensorInfo | None:
    """The type to compute with; None if all have one that the operator takes.

    It is the output's if all have a scale, else one without a scale, unless armpy has the operator
    for numbers with a scale alone.
    """
    first = infos[0]
    are_alike = all(_same_type(info, first) for info in infos)
    if are_alike and (operator not in _ALWAYS_SCALED or first.data_type not in _QUANTIZED):
        return None
    if any(_stored(info) is not _stored(first) for info in infos):
        return None
    if _stored(first) not in _QUANTIZED or any(_has_axis(info) for info in infos):
        return None
    scaled = [info for info in reversed(infos) if info.quantization is not None]
    if len(scaled) < len(infos) and operator not in _ALWAYS_SCALED:
        return TensorInfo(None, _stored(first))
    if scaled:
        return scaled[0].with_shape(None)
    return TensorInfo(None, _QUANTIZED[first.data_type], Quantization((1.0,), (0,)))


def _stored(info: TensorInfo) -> DataType:
    """The type of the stored integers; of other numbers their own."""
    return STORED.get(info.data_type, info.data_type)


def _has_axis(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.axis is not None


def _same_type(info: TensorInfo, other: TensorInfo) -> bool:
    return info.data_type is other.data_type and info.quantization == other.quantization


def _with_type(node: BoundOperator, value: Value, info: TensorInfo, name: str) -> Value:
    """A value's stored integers as those of another type; itself if it has that type."""
    if _same_type(value.info, info):
        return value
    layer = node.network.add_layer(
        BitCast(info.data_type),
        [value],
        name=f"{node.name}:{name}",
        outputs=[info.with_shape(None)],
    )
    return layer.outputs[0]
