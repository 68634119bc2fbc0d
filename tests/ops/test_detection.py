"""Shape rules of operations on boxes and regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import (
    AxisAlignedBboxTransform,
    BoxWithNmsLimit,
    DetectionPostProcess,
    GenerateProposals,
    HeatmapMaxKeypoint,
    Operation,
    RoiAlign,
    RoiPooling,
)
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_testing.labels import operation_label

POST = DetectionPostProcess(max_detections=5, max_classes_per_detection=2)
NCHW = DataLayout.NCHW


def infos(operation: Operation, shapes: Sequence[Shape]) -> list[TensorInfo]:
    """Operands of the first type rule."""
    columns = operation.type_rules[0].inputs
    return [TensorInfo(s, next(iter(c))) for s, c in zip(shapes, columns, strict=True)]


@pytest.mark.parametrize(
    ("operation", "shapes", "expected"),
    [
        (AxisAlignedBboxTransform(), [(3, 4), (3, 8), (3,), (2, 2)], [(3, 8)]),
        (AxisAlignedBboxTransform(), [(None, 4), (3, None), (None,), (2, 2)], [(3, None)]),
        (AxisAlignedBboxTransform(), [(0, 4), (0, 8), (0,), (2, 2)], [(0, 8)]),
        (
            BoxWithNmsLimit(),
            [(3, 2), (3, 8), (3,)],
            [(None,), (None, 4), (None,), (None,)],
        ),
        (
            GenerateProposals(),
            [(1, 5, 6, 2), (1, 5, 6, 8), (2, 4), (1, 2)],
            [(None,), (None, 4), (None,)],
        ),
        (
            GenerateProposals(data_layout=NCHW),
            [(1, 2, 5, 6), (1, 8, 5, 6), (2, 4), (1, 2)],
            [(None,), (None, 4), (None,)],
        ),
        (POST, [(2, 9, 4), (2, 9, 3), (9, 4)], [(2, 10, 4), (2, 10), (2, 10), (2,)]),
        (
            replace(POST, use_regular_nms=True, compact_rows=True),
            [(2, 9, 7), (2, 9, 3), (9, 4)],
            [(2, 5, 4), (2, 5), (2, 5), (2,)],
        ),
        (
            replace(POST, use_regular_nms=True),
            [(None, 9, 4), (1, 9, 3), (9, 4)],
            [(1, 10, 4), (1, 10), (1, 10), (1,)],
        ),
        (RoiAlign((2, 3)), [(1, 8, 9, 5), (7, 4), (7,)], [(7, 2, 3, 5)]),
        (RoiPooling((2, 3)), [(1, 8, 9, 5), (0, 4), (0,)], [(0, 2, 3, 5)]),
        (
            RoiAlign((2, 3), data_layout=NCHW),
            [(1, 5, 8, 9), (None, 4), (None,)],
            [(None, 5, 2, 3)],
        ),
        (HeatmapMaxKeypoint(), [(7, 8, 8, 5), (7, 4)], [(7, 5), (7, 5, 2)]),
        (HeatmapMaxKeypoint(NCHW), [(7, 5, 8, None), (7, 4)], [(7, 5), (7, 5, 2)]),
    ],
    ids=operation_label,
)
def test_shapes(operation: Operation, shapes: list[Shape], expected: list[Shape]) -> None:
    assert [info.shape for info in operation.infer(infos(operation, shapes))] == expected


@pytest.mark.parametrize(
    ("operation", "shapes", "message"),
    [
        (AxisAlignedBboxTransform(), [(3, 5), (3, 8), (3,), (2, 2)], r"rois has the wrong size"),
        (AxisAlignedBboxTransform(), [(3, 4), (2, 8), (3,), (2, 2)], r"deltas does not match"),
        (AxisAlignedBboxTransform(), [(3, 4), (3, 6), (3,), (2, 2)], r"multiple of 4.*got 6"),
        (AxisAlignedBboxTransform(), [(3, 4), (3, 8), (3,), (2, 3)], r"image_info has the wrong"),
        (BoxWithNmsLimit(), [(3, 1), (3, 4), (3,)], r"no class beside.*2 or more.*got 1"),
        (BoxWithNmsLimit(), [(3, 2), (3, 4), (3,)], r"one box per class.*each of 2; got 4"),
        (
            GenerateProposals(),
            [(1, 5, 6, 2), (1, 5, 6, 4), (2, 4), (1, 2)],
            r"one box per anchor",
        ),
        (
            GenerateProposals(),
            [(1, 5, 6, 2), (1, 5, 6, 8), (3, 4), (1, 2)],
            r"anchors does not match",
        ),
        (POST, [(1, 9, 3), (1, 9, 3), (9, 4)], r"encodings are not boxes.*4 numbers.*got 3"),
        (POST, [(1, 9, 4), (1, 9, 1), (9, 4)], r"not columns of the scores.*2 columns.*got 1"),
        (
            replace(POST, num_classes=4),
            [(1, 9, 4), (1, 9, 3), (9, 4)],
            r"4 columns or more; got 3",
        ),
        (
            replace(POST, max_detections=0),
            [(1, 9, 4), (1, 9, 3), (9, 4)],
            r"max_detections is too small.*got 0",
        ),
        (
            replace(POST, scale_h=0.0),
            [(1, 9, 4), (1, 9, 3), (9, 4)],
            r"scale_h is not positive.*got 0",
        ),
        (RoiAlign((2, 0)), [(1, 8, 9, 5), (7, 4), (7,)], r"output size.*got \(2, 0\)"),
        (RoiAlign((2, 2), 0.0), [(1, 8, 9, 5), (7, 4), (7,)], r"stride is not positive"),
        (
            RoiAlign((2, 2), width_samples=-1),
            [(1, 8, 9, 5), (7, 4), (7,)],
            r"number of samples is negative.*got \(0, -1\)",
        ),
        (RoiPooling((2, 2)), [(1, 8, 9, 5), (7, 4), (6,)], r"batch_indices does not match"),
        (HeatmapMaxKeypoint(), [(7, 8, 9, 5), (7, 4)], r"not square.*got \(7, 8, 9, 5\)"),
        (HeatmapMaxKeypoint(), [(7, 1, 1, 5), (7, 4)], r"2 or more"),
        (HeatmapMaxKeypoint(), [(6, 8, 8, 5), (7, 4)], r"rois does not match"),
    ],
    ids=operation_label,
)
def test_shapes_that_do_not_fit_are_refused(
    operation: Operation, shapes: list[Shape], message: str
) -> None:
    with pytest.raises(LayerValidationError, match=message):
        operation.infer(infos(operation, shapes))


def test_pooled_regions_keep_the_inputs_quantisation() -> None:
    eighths = Quantization.per_tensor(0.125)
    inputs = [
        TensorInfo((1, 4, 4, 1), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 3)),
        TensorInfo((2, 4), DataType.QASYMM_U16, eighths),
        TensorInfo((2,), DataType.SIGNED32),
    ]
    output = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(0.25, 3))

    with pytest.raises(LayerValidationError, match=r"quantised unlike.*0\.5.*got.*0\.25"):
        RoiPooling((1, 1)).infer(inputs, [output])
    assert RoiAlign((1, 1)).infer(inputs, [output])[0].scale == 0.25


def test_results_are_counted_in_integers_or_floats() -> None:
    inputs = [TensorInfo(s, DataType.FLOAT32) for s in ((1, 9, 4), (1, 9, 3), (9, 4))]
    types = [info.data_type for info in POST.infer(inputs)]
    floats = [TensorInfo(None, DataType.FLOAT32)] * 4

    assert types[1::2] == [DataType.SIGNED32] * 2
    assert {info.data_type for info in POST.infer(inputs, floats)} == {DataType.FLOAT32}
