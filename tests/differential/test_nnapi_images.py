"""NNAPI's resizings and its operations on regions of images, against plain formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    FLOAT16,
    FLOATS,
    IMAGE_TYPES,
    SIGNED,
    UNSIGNED,
    UNSIGNED16,
    Draw,
    Expected,
    Input,
    Instance,
    Reals,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    is_quantized,
    moved,
    names,
    number,
)

_O = OperationCode
_F32 = np.float32


def in_layout(source: Tensor, nchw: bool) -> Tensor:
    """An NHWC tensor in the layout that is asked for."""
    stored = np.ascontiguousarray(np.moveaxis(source.stored, 3, 1)) if nchw else source.stored
    return Tensor(source.code, stored, source.scale, source.zero_point)


def positions(
    size: int, wanted: int, align: bool, half: bool, *, nearest: bool
) -> list[np.float32]:
    """Where each of the wanted pixels lies in the source, as float32 has it."""
    scale = _F32(size) / _F32(wanted)
    if align and wanted > 1:
        scale = _F32(size - 1) / _F32(wanted - 1)
    if not half:
        return [_F32(i) * scale for i in range(wanted)]
    back = _F32(0) if nearest else _F32(0.5)
    return [(_F32(i) + _F32(0.5)) * scale - back for i in range(wanted)]


def nearest(size: int, wanted: int, align: bool, half: bool) -> list[int]:
    """The source pixel of each wanted one."""
    places = positions(size, wanted, align, half, nearest=True)
    indexes = [math.floor(v + _F32(0.5)) if align else math.floor(v) for v in places]
    return [min(max(i, 0), size - 1) for i in indexes]


def neighbours(size: int, wanted: int, align: bool, half: bool) -> list[tuple[int, int, float]]:
    """The two source pixels around each wanted one, and the share of the second."""
    pairs = []
    for v in positions(size, wanted, align, half, nearest=False):
        low, high = max(math.floor(v), 0), min(math.ceil(v), size - 1)
        pairs.append((low, high, float(v) - low))
    return pairs


def resize_arguments(
    draw: Draw, source: Tensor, code: OperationCode
) -> tuple[tuple[int, int], bool, bool, bool, list[Input]]:
    """Output height and width, the switches, and the arguments that say so."""
    _, height, width, _ = source.shape
    nchw, align = draw.chance(), draw.chance()
    half = not align and draw.chance()
    if draw.chance(0.3):
        by_height, by_width = (draw.number(1 / size + 0.01, 3) for size in (height, width))
        sizes = (math.floor(height * by_height), math.floor(width * by_width))
        scalars: list[Input] = [number(by_width, source.code), number(by_height, source.code)]
    else:
        sizes = (draw.size(8), draw.size(8))
        scalars = [integer(sizes[1]), integer(sizes[0])]
    switches: list[Input] = [boolean(nchw), boolean(align), boolean(half)]
    if not half and draw.chance():
        switches = switches[: 2 if align else 1]
    if code is _O.RESIZE_BILINEAR and len(switches) == 1 and not nchw and not align:
        switches = []
    return sizes, nchw, align, half, [*scalars, *switches]


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
@pytest.mark.parametrize("code", [_O.RESIZE_BILINEAR, _O.RESIZE_NEAREST_NEIGHBOR], ids=names)
def test_resizing(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, (draw.size(2), draw.size(6), draw.size(6), draw.size(2)))
        sizes, nchw, align, half, arguments = resize_arguments(draw, source, code)
        if code is _O.RESIZE_NEAREST_NEIGHBOR:
            rows = nearest(source.shape[1], sizes[0], align, half)
            columns = nearest(source.shape[2], sizes[1], align, half)
            chosen = source.stored[:, rows][:, :, columns]
            values = np.moveaxis(chosen, 3, 1) if nchw else chosen
            output = moved(source, np.ascontiguousarray(values))
        else:
            real = np.empty((source.shape[0], *sizes, source.shape[3]))
            for y, (top, bottom, down) in enumerate(
                neighbours(source.shape[1], sizes[0], align, half)
            ):
                for x, (left, right, across) in enumerate(
                    neighbours(source.shape[2], sizes[1], align, half)
                ):
                    image = source.real
                    upper = image[:, top, left] * (1 - across) + image[:, top, right] * across
                    lower = image[:, bottom, left] * (1 - across) + image[:, bottom, right] * across
                    real[:, y, x] = upper * (1 - down) + lower * down
            values = np.moveaxis(real, 3, 1) if nchw else real
            output = Expected(kind, values, source.scale, source.zero_point)
        return Instance(code, [in_layout(source, nchw), *arguments], [output])

    check_instances(make)


def boxes_within(draw: Draw, kind: OperandCode, count: int, height: int, width: int) -> Tensor:
    """Boxes (x1, y1, x2, y2) of quarters of pixels."""
    corners = np.empty((count, 4))
    for box in corners:
        box[0::2] = sorted(draw.size(4 * width, 0) / 4 for _ in range(2))
        box[1::2] = sorted(draw.size(4 * height, 0) / 4 for _ in range(2))
    if is_quantized(kind):
        return Tensor(UNSIGNED16, (corners * 8).astype(np.uint16), 0.125)
    return Tensor(kind, corners.astype(kind.traits.dtype))


def batch_indices(draw: Draw, count: int, batches: int) -> Tensor:
    """Ascending numbers of the images that boxes are of."""
    return integers(sorted(draw.size(batches - 1, 0) for _ in range(count)))


def sample(image: Reals, y: float, x: float) -> float:
    """A pixel (h, w) between those that there are; the last row and column go on."""
    height, width = image.shape
    top, left = min(math.floor(y), height - 1), min(math.floor(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down = 0.0 if top == height - 1 else y - top
    across = 0.0 if left == width - 1 else x - left
    upper = image[top, left] * (1 - across) + image[top, right] * across
    lower = image[bottom, left] * (1 - across) + image[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


def aligned(
    image: Reals, box: Sequence[float], sizes: tuple[int, int], samples: tuple[int, int]
) -> Reals:
    """Means of samples in each cell of a box (x1, y1, x2, y2) in one channel (h, w)."""
    height, width = max(box[3] - box[1], 1.0) / sizes[0], max(box[2] - box[0], 1.0) / sizes[1]
    down, across = samples[0] or math.ceil(height), samples[1] or math.ceil(width)
    means = np.empty(sizes)
    for y, x in np.ndindex(*sizes):
        total = 0.0
        for i, j in np.ndindex(down, across):
            row = box[1] + (y + (i + 0.5) / down) * height
            column = box[0] + (x + (j + 0.5) / across) * width
            total += sample(image, row, column)
        means[y, x] = total / (down * across)
    return means


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_roi_align(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        batches, height, width, depth = draw.size(2), draw.size(7, 2), draw.size(7, 2), draw.size(2)
        strides = (draw.pick((0.5, 1.0, 2.0)), draw.pick((0.5, 1.0, 2.0)))
        source, count = draw.tensor(kind, (batches, height, width, depth)), draw.size(3)
        rois = boxes_within(draw, kind, count, int(height * strides[0]), int(width * strides[1]))
        sizes, samples = (draw.size(3), draw.size(3)), (draw.size(3, 0), draw.size(3, 0))
        owners, nchw = batch_indices(draw, count, batches), draw.chance()
        real = np.empty((count, *sizes, depth))
        for r, c in np.ndindex(count, depth):
            box = rois.real[r] / [strides[1], strides[0], strides[1], strides[0]]
            image = source.real[owners.stored[r], :, :, c]
            real[r, :, :, c] = aligned(image, [float(x) for x in box], sizes, samples)
        # The quantised operation rounds each sample's weights to 1/255.
        output = draw.output(kind, np.moveaxis(real, 3, 1) if nchw else real, source.scale)
        inputs = [in_layout(source, nchw), rois, owners, *(integer(n) for n in sizes)]
        inputs += [number(stride, kind) for stride in strides]
        inputs += [*(integer(n) for n in samples), boolean(nchw)]
        return Instance(_O.ROI_ALIGN, inputs, [output])

    check_instances(make)


def away(value: float) -> int:
    """The nearest integer, halves away from 0; values are not negative."""
    return math.floor(value + 0.5)


def bins(start: int, end: int, count: int, size: int) -> list[tuple[int, int]]:
    """First and one past the last pixel of each part of a region."""
    step = _F32(max(end - start + 1, 1)) / _F32(count)
    bounds = []
    for i in range(count):
        first = math.floor(_F32(start) + _F32(i) * step)
        last = math.ceil(_F32(start) + _F32(i + 1) * step)
        bounds.append((min(max(first, 0), size), min(max(last, 0), size)))
    return bounds


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_roi_pooling(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        batches, height, width, depth = draw.size(2), draw.size(7, 2), draw.size(7, 2), draw.size(2)
        strides = (draw.pick((0.5, 1.0, 2.0)), draw.pick((0.5, 1.0, 2.0)))
        source, count = draw.tensor(kind, (batches, height, width, depth)), draw.size(3)
        rois = boxes_within(draw, kind, count, int(height * strides[0]), int(width * strides[1]))
        sizes, owners = (draw.size(3), draw.size(3)), batch_indices(draw, count, batches)
        maxima = np.empty((count, *sizes, depth), source.stored.dtype)
        for r in range(count):
            x1, y1, x2, y2 = rois.real[r].tolist()
            rows = bins(away(y1 / strides[0]), away(y2 / strides[0]), sizes[0], height)
            columns = bins(away(x1 / strides[1]), away(x2 / strides[1]), sizes[1], width)
            for (y, (top, end)), (x, (left, stop)) in _pairs(rows, columns):
                region = source.stored[owners.stored[r], top:end, left:stop].reshape(-1, depth)
                maxima[r, y, x] = region.max(0) if len(region) else source.zero_point
        nchw = draw.chance()
        values = np.ascontiguousarray(np.moveaxis(maxima, 3, 1)) if nchw else maxima
        inputs = [in_layout(source, nchw), rois, owners, *(integer(n) for n in sizes)]
        inputs += [*(number(stride, kind) for stride in strides), boolean(nchw)]
        return Instance(_O.ROI_POOLING, inputs, [moved(source, values)])

    check_instances(make)


def _pairs(
    rows: list[tuple[int, int]], columns: list[tuple[int, int]]
) -> list[tuple[tuple[int, tuple[int, int]], tuple[int, tuple[int, int]]]]:
    """Each numbered row with each numbered column."""
    return [(row, column) for row in enumerate(rows) for column in enumerate(columns)]


def keypoint(heatmap: Reals, box: Sequence[float], limit: float) -> tuple[float, float, float]:
    """Score and place (x, y) of a square map's maximum, by the parabola around it."""
    size = len(heatmap)
    row, column = divmod(int(heatmap.argmax()), size)

    def at(y: int, x: int) -> float:
        mirrored = [1 if i < 0 else size - 2 if i >= size else i for i in (row + y, column + x)]
        return float(heatmap[mirrored[0], mirrored[1]])

    slope = np.array([at(0, 1) - at(0, -1), at(1, 0) - at(-1, 0)]) / 2
    cross = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    curved = np.array(
        [
            [at(0, 1) - 2 * at(0, 0) + at(0, -1), cross],
            [cross, at(1, 0) - 2 * at(0, 0) + at(-1, 0)],
        ]
    )
    determinant = curved[0, 0] * curved[1, 1] - cross * cross
    shift = np.zeros(2)
    if abs(determinant) >= limit * (1 + abs(curved[0, 0] * curved[1, 1])):
        shift = np.array(
            [
                cross * slope[1] - curved[1, 1] * slope[0],
                cross * slope[0] - curved[0, 0] * slope[1],
            ]
        )
        shift /= determinant
        shift *= min(1.0, 1.5 / max(float(np.abs(shift).max()), 1e-30))
    score = at(0, 0) + float(slope @ shift) + 0.5 * float(shift @ curved @ shift)
    x = (column + shift[0] + 0.5) / size * (box[2] - box[0]) + box[0]
    y = (row + shift[1] + 0.5) / size * (box[3] - box[1]) + box[1]
    return score, float(x), float(y)


def smooth_map(draw: Draw, size: int) -> Reals:
    """A hill with some noise."""
    y, x = draw.rng.uniform(0, size - 1, 2)
    squares = [[(i - y) ** 2 + (j - x) ** 2 for j in range(size)] for i in range(size)]
    return 3 * np.exp(-np.array(squares) / 4) + draw.rng.uniform(0, 0.3, (size, size))


@pytest.mark.parametrize("kind", [*FLOATS, UNSIGNED, SIGNED], ids=names)
def test_heatmap_max_keypoint(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        count, size, depth = draw.size(3), draw.size(6, 2), draw.size(3)
        maps = np.array([[smooth_map(draw, size) for _ in range(depth)] for _ in range(count)])
        heatmap_values = draw.output(kind, np.moveaxis(maps, 1, 3))
        heatmap = Tensor(
            kind, heatmap_values.stored, heatmap_values.scale, heatmap_values.zero_point
        )
        rois = boxes_within(draw, kind, count, 20, 20)
        scores, points = np.empty((count, depth)), np.empty((count, depth, 2))
        limit = 1e-3 if kind is FLOAT16 else 1e-5
        for r, k in np.ndindex(count, depth):
            box = [float(x) for x in rois.real[r]]
            scores[r, k], *points[r, k] = keypoint(heatmap.real[r, :, :, k], box, limit)
        nchw = draw.chance()
        outputs = [
            draw.output(kind, scores),
            Expected(UNSIGNED16, points, 0.125) if is_quantized(kind) else Expected(kind, points),
        ]
        inputs = [in_layout(heatmap, nchw), rois, boolean(nchw)]
        return Instance(_O.HEATMAP_MAX_KEYPOINT, inputs, outputs)

    check_instances(make)
