"""Operations on boxes and regions of images."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation, Recipe
from armpy_nnapi.conformance.random_graphs.recipes.windows import image

_C = OperationCode
BOX_SCALE = 0.125
BOX_QUANT = (BOX_SCALE, 0)
"""Scale and zero point of quantised boxes, anchors and image sizes."""

_SCORES = {
    OperandCode.TENSOR_QUANT8_ASYMM: (1 / 256, 0),
    OperandCode.TENSOR_QUANT8_ASYMM_SIGNED: (1 / 256, -128),
}
_DELTAS = {
    OperandCode.TENSOR_QUANT8_ASYMM: (1 / 128, 128),
    OperandCode.TENSOR_QUANT8_ASYMM_SIGNED: (1 / 128, 0),
}
"""Quantisation of numbers from 0 to 1, and from -1 to 1."""


def coordinates(call: RandomOperation, name: str, values: Array) -> None:
    """Give an argument boxes or sizes, in pixels."""
    is_float = call.is_float(name)
    stored = values if is_float else np.round(values / BOX_SCALE)
    call.elements(name, stored, quant=None if is_float else BOX_QUANT)


def corners(call: RandomOperation, shape: tuple[int, ...], width: float, height: float) -> Array:
    """Boxes x1, y1, x2, y2 with elements inside of an image."""
    ends = np.sort(call.random.uniform(0, 1, (*shape, 2, 2)), axis=-2)
    return (ends * (width, height)).reshape(*shape, 4)


def scores(call: RandomOperation, shape: tuple[int, ...]) -> None:
    """Numbers from 0 to 1, all different as far as the type allows."""
    count = int(np.prod(shape))
    steps = call.random.permutation(max(count, 256))[:count].reshape(shape)
    quant = _SCORES.get(call.code("scores"))
    if quant is None:
        call.elements("scores", (steps + 0.5) / max(count, 256))
    else:
        call.elements("scores", steps % 256 + quant[1], quant=quant)


def deltas(call: RandomOperation, shape: tuple[int, ...]) -> None:
    """Numbers from -1 to 1."""
    call.tensor("deltas", shape, low=None, quant=_DELTAS.get(call.code("deltas")))


def batches(call: RandomOperation, count: int, num_images: int) -> None:
    """The image of each box, in order."""
    indices = np.sort(call.random.integers(0, num_images, count))
    call.elements("batch_indices", indices)


def image_sizes(call: RandomOperation, num_images: int) -> None:
    """Heights and widths."""
    coordinates(call, "image_info", call.random.integers(16, 128, (num_images, 2)))


def bbox_transform(call: RandomOperation) -> None:
    """Boxes, and how they move for each class."""
    count, num_images = call.integer(1, 6), call.integer(1, 3)
    coordinates(call, "rois", corners(call, (count,), 100, 100))
    deltas(call, (count, 4 * call.integer(1, 3)))
    batches(call, count, num_images)
    image_sizes(call, num_images)
    call.output("output", *BOX_QUANT)


def nms_limit(call: RandomOperation) -> None:
    """Boxes of some classes, with any kernel."""
    count, classes = call.integer(1, 12), call.integer(2, 4)
    scores(call, (count, classes))
    boxes = corners(call, (count, classes), 100, 100).reshape(count, -1)
    coordinates(call, "rois", boxes)
    batches(call, count, call.integer(1, 3))
    call.scalar("score_threshold", call.choose(0, 1, 3, 9) / 10 + 0.001)
    call.scalar("max_detections", call.choose(-1, 1, 2, 5, 20))
    call.scalar("nms_kernel", call.integer(0, 2))
    call.scalar("iou_threshold", call.real(0.2, 0.8))
    call.scalar("sigma", call.real(0.3, 1))
    call.scalar("nms_score_threshold", call.real(0, 0.2))
    call.output("output_rois", *BOX_QUANT)


def generate_proposals(call: RandomOperation) -> None:
    """Anchors over an image, in either layout."""
    n, h, w, anchors = call.shape(4, high=3)
    nchw = call.chance()
    for make, channels in ((scores, anchors), (deltas, 4 * anchors)):
        make(call, (n, channels, h, w) if nchw else (n, h, w, channels))
    centred = corners(call, (anchors,), 40, 40) - 20
    coordinates(call, "anchors", centred)
    image_sizes(call, n)
    for name in ("height_stride", "width_stride"):
        call.scalar(name, call.choose(4, 10, 16))
    call.scalar("pre_nms_max", call.choose(-1, 0, 2, 10))
    call.scalar("post_nms_max", call.choose(-1, 1, 5))
    call.scalar("iou_threshold", call.real(0.2, 0.8))
    call.scalar("min_size", call.real(0, 4))
    call.scalar("nchw", nchw)
    call.output("output_rois", *BOX_QUANT)


def post_process(call: RandomOperation) -> None:
    """Anchors with scores and shifts, with either suppression."""
    n, anchors, classes = call.integer(1, 2), call.integer(1, 8), call.integer(2, 5)
    scores(call, (n, anchors, classes))
    call.tensor("deltas", (n, anchors, call.choose(4, 4, 6)), low=-1, high=1)
    call.tensor("anchors", (anchors, 4), low=0.1, high=1)
    for name in ("scale_y", "scale_x", "scale_height", "scale_width"):
        call.scalar(name, call.real(1, 10))
    call.scalar("use_regular_nms", call.chance())
    call.scalar("max_detections", call.integer(1, 6))
    call.scalar("max_classes_per_detection", call.integer(1, 3))
    call.scalar("max_detections_per_class", call.integer(1, 6))
    call.scalar("score_threshold", call.real(0, 0.5))
    call.scalar("iou_threshold", call.real(0.2, 0.8))
    call.scalar("background_in_labels", call.chance())


def regions(call: RandomOperation) -> None:
    """Regions of feature maps that are smaller than the images."""
    size = image(call)
    strides = {name: float(call.choose(1, 2, 4)) for name in ("width", "height")}
    count = call.integer(1, 5)
    width, height = size.width * strides["width"], size.height * strides["height"]
    coordinates(call, "rois", 0.95 * corners(call, (count,), width, height))
    batches(call, count, size.batch)
    for name, stride in strides.items():
        call.scalar(f"output_{name}", call.integer(1, 4))
        call.scalar(f"{name}_stride", stride)
        call.scalar(f"{name}_samples", call.integer(0, 3))
    if call.definition.code == _C.ROI_ALIGN:
        call.any_output_quant()


def heatmap(call: RandomOperation) -> None:
    """Square maps of some key points."""
    count, side, points = call.integer(1, 4), call.integer(2, 6), call.integer(1, 4)
    nchw = call.chance()
    call.data("heatmap", (count, points, side, side) if nchw else (count, side, side, points))
    coordinates(call, "rois", corners(call, (count,), 100, 100))
    call.scalar("nchw", nchw)
    call.any_output_quant("output_scores")
    call.output("output_keypoints", *BOX_QUANT)


RECIPES: dict[OperationCode, Recipe] = {
    _C.AXIS_ALIGNED_BBOX_TRANSFORM: bbox_transform,
    _C.BOX_WITH_NMS_LIMIT: nms_limit,
    _C.GENERATE_PROPOSALS: generate_proposals,
    _C.DETECTION_POSTPROCESSING: post_process,
    **dict.fromkeys((_C.ROI_ALIGN, _C.ROI_POOLING), regions),
    _C.HEATMAP_MAX_KEYPOINT: heatmap,
}
