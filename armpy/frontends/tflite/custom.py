"""Custom operators that LiteRT's interpreter brings with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from armpy.core.flatbuffers.flexbuffers import read_options
from armpy.errors import ParserError
from armpy.frontends.tflite.composed import ComposedOperator, Expansion
from armpy.graph import Value
from armpy.ops.detection import DetectionPostProcess
from armpy.tensor import TensorInfo
from armpy.types import DataType

_NAMES = {
    "max_detections": "max_detections",
    "max_classes_per_detection": "max_classes_per_detection",
    "num_classes": "num_classes",
    "nms_score_threshold": "nms_score_threshold",
    "nms_iou_threshold": "nms_iou_threshold",
    "y_scale": "scale_y",
    "x_scale": "scale_x",
    "h_scale": "scale_h",
    "w_scale": "scale_w",
}
"""Options that a file must have, by the operation's names for them."""

_USUAL_PER_CLASS = 100


def _detection(parts: ComposedOperator) -> Sequence[Value]:
    """Boxes around anchors.

    References
    ----------
    TFLite ``detection_postprocess.cc``.
    """
    options = read_options(parts.options)
    missing = [name for name in _NAMES if name not in options]
    if missing or not all(math.isfinite(options[name]) for name in _NAMES):
        raise ParserError("custom options are missing or no numbers", actual=", ".join(missing))
    whole = ("max_detections", "max_classes_per_detection", "num_classes")
    attributes = {
        name: int(options[option]) if option in whole else float(options[option])
        for option, name in _NAMES.items()
    }
    operation = DetectionPostProcess(
        **attributes,  # type: ignore[arg-type]  # attributes by name
        detections_per_class=int(options.get("detections_per_class", _USUAL_PER_CLASS)),
        use_regular_nms=bool(options.get("use_regular_nms", False)),
    )
    floats = [TensorInfo(None, DataType.FLOAT32)] * 4
    inputs = [parts.value(index) for index in range(3)]
    return parts.layers(operation, inputs, floats)


CUSTOM: Mapping[str, Expansion] = {"TFLite_Detection_PostProcess": _detection}
"""Converters by the operators' names in files."""
