"""Operators over landmarks: a matrix that crops around some of them, and its application."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops import Concat, Gather, Reduce, ReduceOperation, Reshape, Slice, UnaryOperation
from armpy.ops.operation import require
from armpy.plugins.hooks import OperatorParts
from armpy.plugins.hooks.flatbuffers import Entry, read_entries
from armpy_mediapipe.arithmetic import Arithmetic, number, option


def transformed(parts: OperatorParts) -> Value:
    """Convert ``TransformLandmarks`` (version 2): x and y by the matrix, z as it is.

    References
    ----------
    MediaPipe ``transform_landmarks.cc``.
    """
    shape = parts.shape(0)
    require(
        len(shape) == 3 and shape[0] == 1 and shape[2] in (2, 3),
        "the landmarks have the wrong shape",
        expected="(1, landmarks, 2 or 3)",
        actual=str(shape),
    )
    compute = Arithmetic(parts)
    matrix = compute.matrix(parts.value(1))
    columns = [
        parts.layer(Slice((0, 0, axis), (1, shape[1], 1)), parts.value(0))
        for axis in range(shape[2])
    ]
    moved = [
        compute.add(
            compute.add(compute.multiply(row[0], columns[0]), compute.multiply(row[1], columns[1])),
            row[3],
        )
        for row in matrix
    ]
    return parts.layer(Concat(2), *moved, *columns[2:])


def crop_matrix(parts: OperatorParts) -> Value:
    """Convert ``Landmarks2TransformMatrix`` (version 2): the crop that upright landmarks fill.

    The image is turned until the line between two landmarks has the wanted angle, and cropped to
    the others of `subset_idxs`, scaled. The matrix leads pixels of the crop to those of the image.

    References
    ----------
    MediaPipe ``landmarks_to_transform_matrix.cc``.
    """
    options = read_entries(parts.options)
    shape = parts.shape(0)
    require(
        len(shape) == 3 and shape[0] == 1 and shape[1] > 0 and shape[2] == 3,
        "the landmarks have the wrong shape",
        expected="(1, landmarks, 3)",
        actual=str(shape),
    )
    last = shape[1] - 1
    ends = [option(options, f"{side}_rotation_idx", last) for side in ("left", "right")]
    subset = _subset(options, last)
    compute = Arithmetic(parts)
    flat = parts.layer(Reshape((shape[1], 3)), parts.value(0))

    def coordinate(indices: list[int], axis: int) -> Value:
        rows = parts.layer(Gather(), flat, parts.constant(np.array(indices, np.int32)))
        return parts.layer(Slice((0, axis), (len(indices), 1)), rows)

    (left, right), target = ends, _real(options, "target_rotation_radians", 0.0)
    line = [compute.subtract(coordinate([right], k), coordinate([left], k)) for k in (0, 1)]
    turn = compute.subtract(number(parts, target), compute.angle(line[1], line[0]))
    cosine, sine = (compute.apply(kind, turn) for kind in (UnaryOperation.COS, UnaryOperation.SIN))
    x, y = coordinate(subset, 0), coordinate(subset, 1)
    upright = (
        compute.subtract(compute.multiply(cosine, x), compute.multiply(sine, y)),
        compute.add(compute.multiply(sine, x), compute.multiply(cosine, y)),
    )
    edges = [
        [parts.layer(Reduce(kind, (0,), True), side) for side in upright]
        for kind in (ReduceOperation.MIN, ReduceOperation.MAX)
    ]
    half, ranges = number(parts, 0.5), list(zip(*edges, strict=True))
    middle = [compute.multiply(compute.add(low, high), half) for low, high in ranges]
    sizes = [option(options, f"output_{side}") for side in ("width", "height")]
    require(min(sizes) > 0, "the crop is empty", actual=sizes)
    scales = [
        compute.multiply(
            compute.subtract(high, low), number(parts, _real(options, f"scale_{axis}") / size)
        )
        for axis, size, (low, high) in zip("xy", sizes, ranges, strict=True)
    ]
    back = compute.subtract(number(parts, 0.0), sine)
    turned = ((cosine, sine), (back, cosine))  # by the opposite angle
    zero, unit = (parts.constant(np.full((1, 1), value, np.float32)) for value in (0, 1))
    rows: list[Value] = []
    for row in turned:
        terms = [compute.multiply(row[k], middle[k]) for k in (0, 1)]
        factors = [compute.multiply(row[k], scales[k]) for k in (0, 1)]
        begin = [compute.multiply(factors[k], number(parts, -sizes[k] / 2)) for k in (0, 1)]
        rows += [*factors, zero, compute.add(compute.add(*terms), compute.add(*begin))]
    rows += [zero, zero, unit, zero, zero, zero, zero, unit]
    return parts.layer(Reshape((1, 4, 4)), parts.layer(Concat(0), *rows))


def _subset(options: Mapping[str, Entry], last: int) -> list[int]:
    """Numbers of the landmarks that are cropped to."""
    subset = options.get("subset_idxs")
    if not isinstance(subset, tuple) or not subset:
        raise ParserError("the custom option 'subset_idxs' is missing or empty")
    return [option({"subset_idxs": index}, "subset_idxs", last) for index in subset]


def _real(options: Mapping[str, Entry], name: str, default: float | None = None) -> float:
    """An option that is a finite number."""
    value = options.get(name, default)
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ParserError(
            f"the custom option '{name}' cannot be used",
            expected="a finite number",
            actual=repr(value),
        )
    return float(value)
