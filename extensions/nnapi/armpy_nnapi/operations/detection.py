"""Operations that turn scores and encoded boxes into detected objects."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.ops.detection import (
    AxisAlignedBboxTransform,
    BoxWithNmsLimit,
    DetectionPostProcess,
    GenerateProposals,
    NmsKernel,
)
from armpy.ops.operation import require
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
_CORNERS = "Corners x1, y1, x2, y2"
_IMAGE_INFO = Argument("image_info", "B", "Height and width of each image.", ranks=(2,))


def _lower_transform(lower: LoweringContext) -> Value:
    """AXIS_ALIGNED_BBOX_TRANSFORM."""
    require_box_scale(lower, "rois", "image_info")
    images = lower.shape("image_info")
    # There may be no boxes, but NNAPI's kernel wants an image all the same.
    require(images[0] > 0, "there are no images", expected="1 or more", actual=images)
    inputs = [lower[name] for name in ("rois", "deltas", "batch_indices", "image_info")]
    return lower.add(AxisAlignedBboxTransform(), *inputs, output=box_output(lower))


_TRANSFORM = OperationDefinition(
    OperationCode.AXIS_ALIGNED_BBOX_TRANSFORM,
    "Boxes moved, scaled and clipped to their images.",
    forms(
        (
            Argument("rois", "B", f"{_CORNERS} of each box.", ranks=(2,)),
            Argument("deltas", "T", "dx, dy, dw, dh for each box and class.", ranks=(2,)),
            BATCH_INDICES,
            _IMAGE_INFO,
        ),
        outputs=(Argument("output", "B", f"{_CORNERS} for each box and class."),),
    ),
    rows(
        "B T",
        (_C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, 29),
        (_C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, 29),
        (_C.TENSOR_QUANT16_ASYMM, _C.TENSOR_QUANT8_ASYMM, 29),
        # The signed type is accepted before its own feature level.
        (_C.TENSOR_QUANT16_ASYMM, _C.TENSOR_QUANT8_ASYMM_SIGNED, 29),
    ),
    _lower_transform,
    allows_zero_sized=True,
)


def _nms_kernel(code: int) -> NmsKernel:
    """The kernel that a number names."""
    if code not in {kernel.value for kernel in NmsKernel}:
        raise LayerValidationError(
            "unknown kernel",
            expected=", ".join(f"{kernel.value} ({kernel.name})" for kernel in NmsKernel),
            actual=str(code),
        )
    return NmsKernel(code)


def _lower_nms_limit(lower: LoweringContext) -> Sequence[Value]:
    require_box_scale(lower, "rois")
    operation = BoxWithNmsLimit(
        score_threshold=float(lower.number("score_threshold")),
        max_detections=lower.integer("max_detections"),
        kernel=_nms_kernel(lower.integer("nms_kernel")),
        iou_threshold=float(lower.number("iou_threshold")),
        sigma=float(lower.number("sigma")),
        nms_score_threshold=float(lower.number("nms_score_threshold")),
    )
    inputs = [lower[name] for name in ("scores", "rois", "batch_indices")]
    indices = [lower.output_info(2), lower.output_info(3)]
    outputs = [output_like(lower, "scores"), box_output(lower, 1), *indices]
    return lower.add_layer(operation, inputs, outputs)


_NMS_LIMIT = OperationDefinition(
    OperationCode.BOX_WITH_NMS_LIMIT,
    "The best boxes of each class and image by soft non-maximum suppression.",
    forms(
        (
            Argument("scores", "T", "Of each box and class; class 0 is background.", ranks=(2,)),
            Argument("rois", "B", f"{_CORNERS} for each box and class.", ranks=(2,)),
            BATCH_INDICES,
            Argument("score_threshold", "S", "Only scores above it take part."),
            Argument("max_detections", _C.INT32, "Per image; negative for no limit."),
            Argument("nms_kernel", _C.INT32, "0 hard, 1 linear, 2 gaussian."),
            Argument("iou_threshold", "S"),
            Argument("sigma", "S", "Of the gaussian kernel."),
            Argument("nms_score_threshold", "S", "Boxes with a lower score are dropped."),
        ),
        outputs=(
            Argument("output_scores", "T"),
            Argument("output_rois", "B"),
            Argument("output_classes", _C.TENSOR_INT32),
            Argument("output_batch_indices", _C.TENSOR_INT32),
        ),
    ),
    rows(
        "T B S",
        (_C.TENSOR_FLOAT32, _C.TENSOR_FLOAT32, _C.FLOAT32, 29),
        (_C.TENSOR_FLOAT16, _C.TENSOR_FLOAT16, _C.FLOAT16, 29),
        (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT16_ASYMM, _C.FLOAT32, 29),
        (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_QUANT16_ASYMM, _C.FLOAT32, 30),
    ),
    _lower_nms_limit,
    allows_zero_sized=True,
)


def _lower_proposals(lower: LoweringContext) -> Sequence[Value]:
    require_box_scale(lower, "anchors", "image_info")
    operation = GenerateProposals(
        height_stride=float(lower.number("height_stride")),
        width_stride=float(lower.number("width_stride")),
        pre_nms_max=lower.integer("pre_nms_max"),
        post_nms_max=lower.integer("post_nms_max"),
        iou_threshold=float(lower.number("iou_threshold")),
        min_size=float(lower.number("min_size")),
        data_layout=data_layout(lower),
    )
    inputs = [lower[name] for name in ("scores", "deltas", "anchors", "image_info")]
    outputs = [output_like(lower, "scores"), box_output(lower, 1), lower.output_info(2)]
    return lower.add_layer(operation, inputs, outputs)


_PROPOSALS = OperationDefinition(
    OperationCode.GENERATE_PROPOSALS,
    "Regions that may hold objects: anchors moved by predictions, the best of them.",
    forms(
        (
            Argument("scores", "T", "Of each anchor at each position.", ranks=(4,)),
            Argument("deltas", "T", "dx, dy, dw, dh for each of them.", ranks=(4,)),
            Argument("anchors", "A", f"{_CORNERS} of each anchor.", ranks=(2,)),
            _IMAGE_INFO,
            Argument("height_stride", "S", "Image rows per row of scores."),
            Argument("width_stride", "S", "Image columns per column of scores."),
            Argument("pre_nms_max", _C.INT32, "Per image; 0 or less for no limit."),
            Argument("post_nms_max", _C.INT32, "Per image; negative for no limit."),
            Argument("iou_threshold", "S"),
            Argument("min_size", "S", "Width and height that boxes must be above."),
            Argument("nchw", _C.BOOL),
        ),
        outputs=(
            Argument("output_scores", "T"),
            Argument("output_rois", "B"),
            Argument("output_batch_indices", _C.TENSOR_INT32),
        ),
    ),
    rows(
        "T A B S",
        (*(_C.TENSOR_FLOAT32,) * 3, _C.FLOAT32, 29),
        (*(_C.TENSOR_FLOAT16,) * 3, _C.FLOAT16, 29),
        # Image sizes are asymmetric, as in NNAPI's kernel; its header says symmetric.
        (
            _C.TENSOR_QUANT8_ASYMM,
            _C.TENSOR_QUANT16_SYMM,
            _C.TENSOR_QUANT16_ASYMM,
            _C.FLOAT32,
            29,
        ),
        (
            _C.TENSOR_QUANT8_ASYMM_SIGNED,
            _C.TENSOR_QUANT16_SYMM,
            _C.TENSOR_QUANT16_ASYMM,
            _C.FLOAT32,
            30,
        ),
    ),
    _lower_proposals,
)


def _lower_post_process(lower: LoweringContext) -> Sequence[Value]:
    """DETECTION_POSTPROCESSING, whose outputs come in another order."""
    for name in ("score_threshold", "iou_threshold"):
        number = lower.number(name)
        require(number >= 0, f"{name} is negative", expected="0 or more", actual=number)
    operation = DetectionPostProcess(
        max_detections=lower.integer("max_detections"),
        max_classes_per_detection=lower.integer("max_classes_per_detection"),
        detections_per_class=lower.integer("max_detections_per_class"),
        nms_score_threshold=float(lower.number("score_threshold")),
        nms_iou_threshold=float(lower.number("iou_threshold")),
        use_regular_nms=bool(lower.number("use_regular_nms")),
        scale_y=float(lower.number("scale_y")),
        scale_x=float(lower.number("scale_x")),
        scale_h=float(lower.number("scale_height")),
        scale_w=float(lower.number("scale_width")),
        background_in_labels=bool(lower.number("background_in_labels")),
        # NNAPI compares with above and below where TFLite's kernel takes equal scores too.
        strict_thresholds=True,
        compact_rows=True,
    )
    scores_info, boxes_info, classes_info, count_info = map(lower.output_info, range(4))
    # The core's operation gives boxes first, as TFLite's does; NNAPI gives scores first.
    boxes, classes, scores, count = lower.add_layer(
        operation,
        [lower[name] for name in ("deltas", "scores", "anchors")],
        [boxes_info, classes_info, scores_info, count_info],
    )
    return scores, boxes, classes, count


_POST_PROCESS = OperationDefinition(
    OperationCode.DETECTION_POSTPROCESSING,
    "Boxes decoded around anchors, the best of them.",
    forms(
        (
            Argument("scores", "T", "Of each anchor and class; class 0 is background.", ranks=(3,)),
            Argument("deltas", "T", "dy, dx, dh, dw of each anchor.", ranks=(3,)),
            Argument("anchors", "T", "Centre y, x and height, width.", ranks=(2,)),
            Argument("scale_y", "S", "What dy is divided by."),
            Argument("scale_x", "S", "What dx is divided by."),
            Argument("scale_height", "S", "What dh is divided by."),
            Argument("scale_width", "S", "What dw is divided by."),
            Argument("use_regular_nms", _C.BOOL, "Whether classes are suppressed one by one."),
            Argument("max_detections", _C.INT32, "Boxes per image."),
            Argument("max_classes_per_detection", _C.INT32, "Without regular suppression."),
            Argument("max_detections_per_class", _C.INT32, "With regular suppression."),
            Argument("score_threshold", "S", "Only scores above it count."),
            Argument("iou_threshold", "S"),
            Argument("background_in_labels", _C.BOOL, "Whether class 1 has the label 1, not 0."),
        ),
        outputs=(
            Argument("output_scores", "T"),
            Argument("output_boxes", "T", "Corners y1, x1, y2, x2."),
            Argument("output_classes", _C.TENSOR_INT32),
            Argument("output_counts", _C.TENSOR_INT32, "Detections per image."),
        ),
    ),
    rows(
        "T S",
        (_C.TENSOR_FLOAT32, _C.FLOAT32, 29),
        (_C.TENSOR_FLOAT16, _C.FLOAT16, 29),
    ),
    _lower_post_process,
)

DEFINITIONS: tuple[OperationDefinition, ...] = (_TRANSFORM, _NMS_LIMIT, _PROPOSALS, _POST_PROCESS)
