"""Operations that look at regions of feature maps."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.region_pooling import HeatmapMaxKeypoint, RoiAlign, RoiPooling
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.boxes import (
    BATCH_INDICES,
    box_output,
    output_like,
    require_box_scale,
)
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout

_C = OperandCode
_ROIS = Argument("rois", "B", "Corners x1, y1, x2, y2 of each region.", ranks=(2,))
_REGIONS = (
    Argument("input", "T", ranks=(4,)),
    _ROIS,
    BATCH_INDICES,
    Argument("output_height", _C.INT32),
    Argument("output_width", _C.INT32),
    Argument("height_stride", "S", "What y is divided by to give a row of the input."),
    Argument("width_stride", "S", "What x is divided by to give a column of the input."),
)
_SAMPLES = (
    Argument("height_samples", _C.INT32, "Per output row; 0 for as many as fit."),
    Argument("width_samples", _C.INT32, "Per output column; 0 for as many as fit."),
)
_NCHW = Argument("nchw", _C.BOOL)
_REGION_ROWS = rows(
    "T B S",
    (_C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, _C.FLOAT32, 29),
    (_C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, _C.FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT16_ASYMM, _C.FLOAT32, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_QUANT16_ASYMM, _C.FLOAT32, 30),
)


def _lower_regions(lower: LoweringContext, operation: RoiAlign | RoiPooling) -> Value:
    """The arguments that ROI_ALIGN and ROI_POOLING have in common."""
    require_box_scale(lower, "rois")
    shape = lower.shape("input")
    # There may be no regions, but the feature map has elements.
    require(0 not in shape, "the input has no elements", expected="1 or more", actual=shape)
    complete = operation.with_attributes(
        output_size=(lower.integer("output_height"), lower.integer("output_width")),
        height_stride=float(lower.number("height_stride")),
        width_stride=float(lower.number("width_stride")),
        data_layout=data_layout(lower),
    )
    # Pooling takes elements as they are, and so keeps their quantisation.
    is_copy = isinstance(operation, RoiPooling)
    output = output_like(lower, "input") if is_copy else lower.output_info()
    inputs = [lower[name] for name in ("input", "rois", "batch_indices")]
    return lower.add(complete, *inputs, output=output)


def _lower_align(lower: LoweringContext) -> Value:
    rows_per_bin, columns_per_bin = lower.integer("height_samples"), lower.integer("width_samples")
    operation = RoiAlign(height_samples=rows_per_bin, width_samples=columns_per_bin)
    return _lower_regions(lower, operation)


def _lower_keypoints(lower: LoweringContext) -> Sequence[Value]:
    """HEATMAP_MAX_KEYPOINT."""
    require_box_scale(lower, "rois")
    outputs = [lower.output_info(0), box_output(lower, 1)]
    operation = HeatmapMaxKeypoint(data_layout(lower))
    return lower.add_layer(operation, [lower["heatmap"], lower["rois"]], outputs)


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.ROI_ALIGN,
        "Averages of samples of regions, interpolated bilinearly.",
        forms((*_REGIONS, *_SAMPLES, _NCHW), outputs=(Argument("output", "T"),)),
        _REGION_ROWS,
        _lower_align,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.ROI_POOLING,
        "Largest elements in the parts of regions.",
        forms((*_REGIONS, _NCHW), outputs=(Argument("output", "T"),)),
        _REGION_ROWS,
        lambda lower: _lower_regions(lower, RoiPooling()),
    ),
    OperationDefinition(
        OperationCode.HEATMAP_MAX_KEYPOINT,
        "The point of each region where each heat map is highest.",
        forms(
            (Argument("heatmap", "T", "Square maps of each region.", ranks=(4,)), _ROIS, _NCHW),
            outputs=(
                Argument("output_scores", "T"),
                Argument("output_keypoints", "B", "x and y."),
            ),
        ),
        rows(
            "T B",
            (_C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT16_ASYMM, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_QUANT16_ASYMM, 30),
        ),
        _lower_keypoints,
    ),
)
