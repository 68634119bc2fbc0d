"""NNAPI's operations of object detection against their definitions, box by box."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    FLOATS,
    IMAGE_TYPES,
    INT32,
    SYMMETRIC16,
    UNSIGNED16,
    Draw,
    Expected,
    Instance,
    Reals,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    is_quantized,
    limits_of,
    names,
    number,
)

_O = OperationCode
Box = Sequence[float]

BOX_SCALE = 0.125
"""Of quantised boxes."""


def box_tensor(kind: OperandCode, corners: Reals) -> Tensor:
    """Boxes in the type that goes with other tensors."""
    if is_quantized(kind):
        return Tensor(UNSIGNED16, np.round(corners / BOX_SCALE).astype(np.uint16), BOX_SCALE)
    return Tensor(kind, corners.astype(kind.traits.dtype))


def box_output(kind: OperandCode, corners: object, count: int) -> Expected:
    """Boxes as an output."""
    real = np.array(corners, np.float64).reshape(count, -1)
    if is_quantized(kind):
        return Expected(UNSIGNED16, real, BOX_SCALE)
    return Expected(kind, real)


def positions(values: Sequence[int]) -> Expected:
    """Integers as an output."""
    return Expected(INT32, np.array(values, np.int32))


def random_boxes(draw: Draw, count: int, height: int = 30, width: int = 30) -> Reals:
    """Boxes (x1, y1, x2, y2) of whole pixels, not empty."""
    corners = np.empty((count, 4))
    for box in corners:
        box[0], box[1] = draw.size(width // 2, 0), draw.size(height // 2, 0)
        box[2], box[3] = box[0] + draw.size(width // 2), box[1] + draw.size(height // 2)
    return corners


def distinct_scores(draw: Draw, kind: OperandCode, shape: Sequence[int]) -> Tensor:
    """Scores above 0 and below 1, no two of which are the same."""
    size = math.prod(shape)
    steps = np.array(draw.permutation(255)[:size]).reshape(shape) + 1
    if is_quantized(kind):
        zero_point = limits_of(kind)[0]
        return Tensor(kind, (steps + zero_point).astype(kind.traits.dtype), 1 / 256, zero_point)
    return Tensor(kind, (steps / 256).astype(kind.traits.dtype))


def overlap(first: Box, second: Box) -> float:
    """Area of the intersection over that of the union."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(width, 0) * max(height, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return shared / (areas - shared) if areas > shared else 0.0


def transformed(box: Box, delta: Box, image: tuple[float, float]) -> list[float]:
    """A box moved and stretched, and clipped to an image (height, width)."""
    width, height = box[2] - box[0], box[3] - box[1]
    x = (box[0] + box[2]) / 2 + delta[0] * width
    y = (box[1] + box[3]) / 2 + delta[1] * height
    half_width, half_height = math.exp(delta[2]) * width / 2, math.exp(delta[3]) * height / 2
    corners = (x - half_width, y - half_height, x + half_width, y + half_height)
    limits = (image[1], image[0], image[1], image[0])
    return [min(max(c, 0.0), limit) for c, limit in zip(corners, limits, strict=True)]


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_axis_aligned_bbox_transform(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        count, classes, batches = draw.size(5), draw.size(3), draw.size(2)
        rois = box_tensor(kind, random_boxes(draw, count))
        deltas = draw.tensor(kind, (count, 4 * classes), -1, 1)
        owners = [draw.size(batches - 1, 0) for _ in range(count)]
        sizes = np.array([[draw.size(40, 20), draw.size(40, 20)] for _ in range(batches)], float)
        transformed_boxes = [
            transformed(
                rois.real[r].tolist(),
                deltas.real[r, 4 * k : 4 * k + 4].tolist(),
                (sizes[owners[r], 0], sizes[owners[r], 1]),
            )
            for r in range(count)
            for k in range(classes)
        ]
        inputs = [rois, deltas, integers(owners), box_tensor(kind, sizes)]
        outputs = [box_output(kind, transformed_boxes, count)]
        return Instance(_O.AXIS_ALIGNED_BBOX_TRANSFORM, inputs, outputs)

    check_instances(make)


def suppressed(
    boxes: Sequence[Box],
    scores: dict[int, float],
    kernel: Callable[[float], float],
    least: float,
    limit: int,
) -> list[tuple[int, float]]:
    """Boxes in the order in which they are chosen, with the scores that they have then."""
    left = dict(scores)
    chosen: list[tuple[int, float]] = []
    while left and (limit < 0 or len(chosen) < limit):
        best = max(left, key=lambda i: left[i])
        chosen.append((best, left.pop(best)))
        for i in list(left):
            left[i] *= kernel(overlap(boxes[best], boxes[i]))
            if left[i] < least:
                del left[i]
    return chosen


def kernels(threshold: float, sigma: float) -> tuple[Callable[[float], float], ...]:
    """Factors of the scores of boxes that overlap a chosen one: hard, linear, Gaussian."""
    return (
        lambda o: 1.0 if o < threshold else 0.0,
        lambda o: 1.0 if o < threshold else 1.0 - o,
        lambda o: math.exp(-o * o / sigma),
    )


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_box_with_nms_limit(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        count, classes, batches = draw.size(8), draw.size(4, 2), draw.size(2)
        scores = distinct_scores(draw, kind, (count, classes))
        corners = random_boxes(draw, count * classes, 12, 12).reshape(count, 4 * classes)
        rois = box_tensor(kind, corners)
        owners = sorted(draw.size(batches - 1, 0) for _ in range(count))
        numbers = [draw.number(0.1, 0.5), draw.number(0.2, 0.7), draw.number(0.3, 1)]
        score_threshold, iou_threshold, sigma = numbers
        least, limit, code = draw.number(0.02, 0.3), draw.pick((-1, 2, 5)), draw.size(2, 0)
        kernel = kernels(iou_threshold, sigma)[code]
        rows: list[tuple[int, int, int, float]] = []
        for batch in range(batches):
            boxes_found = []
            for k in range(1, classes):
                places = [tuple(box[4 * k : 4 * k + 4]) for box in rois.real.tolist()]
                candidates = {
                    r: float(scores.real[r, k])
                    for r in range(count)
                    if owners[r] == batch and scores.real[r, k] > score_threshold
                }
                for r, score in suppressed(places, candidates, kernel, least, limit):
                    boxes_found.append((batch, k, r, score))
            boxes_found.sort(key=lambda row: -row[3])
            rows += sorted(
                boxes_found[: None if limit < 0 else limit], key=lambda row: (row[1], -row[3])
            )
        kept_scores = [row[3] for row in rows]
        kept_boxes = [corners[r, 4 * k : 4 * k + 4] for _, k, r, _ in rows]
        outputs = [
            Expected(kind, np.array(kept_scores, np.float64), scores.scale, scores.zero_point),
            Expected(rois.code, np.array(kept_boxes).reshape(-1, 4), rois.scale),
            positions([row[1] for row in rows]),
            positions([row[0] for row in rows]),
        ]
        scalars = [number(x, kind) for x in (score_threshold, iou_threshold, sigma, least)]
        inputs = [scores, rois, integers(owners), scalars[0], integer(limit), integer(code)]
        return Instance(_O.BOX_WITH_NMS_LIMIT, [*inputs, *scalars[1:]], outputs)

    check_instances(make)


def proposed(
    boxes: Sequence[Box],
    scores: Sequence[float],
    image: tuple[float, float],
    limits: tuple[int, int],
    threshold: float,
    least: float,
) -> list[int]:
    """Positions of the boxes of one image that are proposed."""
    order = list(range(len(boxes)))
    if 0 < limits[0] < len(order):
        order = sorted(order, key=lambda i: -scores[i])[: limits[0]]
    allowed = {}
    for i in order:
        x1, y1, x2, y2 = boxes[i]
        is_inside = (x1 + x2) / 2 < image[1] and (y1 + y2) / 2 < image[0]
        if x2 - x1 > least and y2 - y1 > least and is_inside:
            allowed[i] = scores[i]
    hard = kernels(threshold, 1.0)[0]
    # Scores are above 0, and suppressed ones are 0.
    return [i for i, _ in suppressed(boxes, allowed, hard, 1e-9, limits[1])]


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_generate_proposals(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        batches, height, width, num_anchors = draw.size(2), draw.size(3), draw.size(3), draw.size(3)
        grid = (batches, height, width, num_anchors)
        scores = distinct_scores(draw, kind, grid)
        deltas = draw.tensor(kind, (*grid[:3], 4 * num_anchors), -0.5, 0.5)
        corners = random_boxes(draw, num_anchors, 16, 16) - 4
        anchors = Tensor(kind, corners.astype(kind.traits.dtype))
        if is_quantized(kind):
            anchors = Tensor(SYMMETRIC16, (corners * 8).astype(np.int16), BOX_SCALE)
        sizes = np.array([[draw.size(20, 10), draw.size(20, 10)] for _ in range(batches)], float)
        strides = (float(draw.size(4)), float(draw.size(4)))
        limits = (draw.pick((-1, 0, 4)), draw.pick((-1, 3, 6)))
        threshold, least = draw.number(0.2, 0.7), draw.number(0, 3)
        kept_scores, places, owners = [], [], []
        for n in range(batches):
            boxes, values = [], []
            for y, x, a in np.ndindex(*grid[1:]):
                moves = [x * strides[1], y * strides[0]] * 2
                anchor = (anchors.real[a] + moves).tolist()
                delta = deltas.real[n, y, x, 4 * a : 4 * a + 4].tolist()
                boxes.append(transformed(anchor, delta, (sizes[n, 0], sizes[n, 1])))
                values.append(float(scores.real[n, y, x, a]))
            image = (sizes[n, 0], sizes[n, 1])
            for i in proposed(boxes, values, image, limits, threshold, least):
                kept_scores.append(values[i])
                places.append(boxes[i])
                owners.append(n)
        nchw = draw.chance()
        inputs = [
            in_layout(scores, nchw),
            in_layout(deltas, nchw),
            anchors,
            box_tensor(kind, sizes),
            *(number(stride, kind) for stride in strides),
            *(integer(limit) for limit in limits),
            number(threshold, kind),
            number(least, kind),
            boolean(nchw),
        ]
        outputs = [
            Expected(kind, np.array(kept_scores), scores.scale, scores.zero_point),
            Expected(
                UNSIGNED16 if is_quantized(kind) else kind,
                np.array(places).reshape(-1, 4),
                BOX_SCALE if is_quantized(kind) else 0.0,
            ),
            positions(owners),
        ]
        return Instance(_O.GENERATE_PROPOSALS, inputs, outputs)

    check_instances(make)


def in_layout(source: Tensor, nchw: bool) -> Tensor:
    """An NHWC tensor in the layout that is asked for."""
    stored = np.ascontiguousarray(np.moveaxis(source.stored, 3, 1)) if nchw else source.stored
    return Tensor(source.code, stored, source.scale, source.zero_point)


def decoded(delta: Box, anchor: Box, scales: Box) -> list[float]:
    """A box (y1, x1, y2, x2) from an anchor (cy, cx, h, w)."""
    y = anchor[0] + anchor[2] * delta[0] / scales[0]
    x = anchor[1] + anchor[3] * delta[1] / scales[1]
    height = math.exp(delta[2] / scales[2]) * anchor[2] / 2
    width = math.exp(delta[3] / scales[3]) * anchor[3] / 2
    return [y - height, x - width, y + height, x + width]


def chosen_regularly(
    boxes: Sequence[Box], scores: Reals, threshold: float, iou: float, limits: tuple[int, int]
) -> list[tuple[int, int]]:
    """Boxes and their classes, each class on its own: at most so many in all, and per class."""
    hard, scored = kernels(iou, 1.0)[0], []
    for k in range(1, scores.shape[1]):
        candidates = {i: float(s) for i, s in enumerate(scores[:, k]) if s > threshold}
        for i, score in suppressed(boxes, candidates, hard, 1e-9, limits[1]):
            scored.append((score, i, k))
    return [(i, k) for _, i, k in sorted(scored, reverse=True)[: limits[0]]]


def chosen_fast(
    boxes: Sequence[Box], scores: Reals, threshold: float, iou: float, limits: tuple[int, int]
) -> list[tuple[int, int]]:
    """Boxes and their classes, boxes by their best class: so many boxes, and classes of each."""
    best = {i: float(max(row[1:])) for i, row in enumerate(scores) if max(row[1:]) > threshold}
    pairs = []
    for i, _ in suppressed(boxes, best, kernels(iou, 1.0)[0], 1e-9, limits[0]):
        classes = sorted(range(1, scores.shape[1]), key=lambda k: -scores[i, k])
        pairs += [(i, k) for k in classes[: limits[1]]]
    return pairs


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", FLOATS, ids=names)
@pytest.mark.parametrize("is_regular", [True, False], ids=["regular", "fast"])
def test_detection_postprocessing(kind: OperandCode, is_regular: bool) -> None:
    def make(draw: Draw) -> Instance:
        batches, count, classes = draw.size(2), draw.size(8), draw.size(4, 2)
        scores = distinct_scores(draw, kind, (batches, count, classes))
        length = draw.size(6, 4)
        deltas = draw.tensor(kind, (batches, count, length), -1, 1)
        anchors = draw.tensor(kind, (count, 4), 0.2, 1)
        scales = [draw.number(1, 10) for _ in range(4)]
        most, per_anchor, per_class = draw.size(6), draw.size(3), draw.size(4)
        threshold, iou, background = draw.number(0.1, 0.5), draw.number(0.2, 0.6), draw.chance()
        num_rows = most if is_regular else most * per_anchor
        results = [np.zeros((batches, num_rows)), np.zeros((batches, num_rows, 4))]
        labels, counts = np.zeros((batches, num_rows), np.int32), np.zeros(batches, np.int32)
        choose = chosen_regularly if is_regular else chosen_fast
        limits = (most, per_class if is_regular else per_anchor)
        for n in range(batches):
            boxes = [
                decoded(delta.tolist(), anchor.tolist(), scales)
                for delta, anchor in zip(deltas.real[n], anchors.real, strict=True)
            ]
            detections = choose(boxes, scores.real[n], threshold, iou, limits)
            counts[n] = len(detections)
            for row, (i, k) in enumerate(detections):
                results[0][n, row], results[1][n, row] = scores.real[n, i, k], boxes[i]
                labels[n, row] = k - (0 if background else 1)
        inputs = [scores, deltas, anchors, *(number(s, kind) for s in scales)]
        inputs += [boolean(is_regular), *(integer(x) for x in (most, per_anchor, per_class))]
        inputs += [number(threshold, kind), number(iou, kind), boolean(background)]
        outputs = [
            *(Expected(kind, m) for m in results),
            Expected(INT32, labels),
            Expected(INT32, counts),
        ]
        return Instance(_O.DETECTION_POSTPROCESSING, inputs, outputs)

    check_instances(make)
