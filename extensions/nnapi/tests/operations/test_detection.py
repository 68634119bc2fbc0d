"""What NNAPI says of boxes and regions beyond the table of types."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    feature_level,
    integer,
    output,
    run,
    scalar,
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
Q16A, Q16S = OperandCode.TENSOR_QUANT16_ASYMM, OperandCode.TENSOR_QUANT16_SYMM
O = OperationCode  # noqa: E741  # stands before every name


def real(value: float) -> Operand:
    """A constant FLOAT32."""
    return scalar(OperandCode.FLOAT32, value)


def flag(value: bool) -> Operand:
    """A constant BOOL."""
    return scalar(OperandCode.BOOL, value)


BATCH = tensor(I32, [0])
NHWC = flag(False)
PLANE = np.arange(16).reshape(1, 4, 4, 1)


def transform_inputs(rois: Operand, deltas: Operand, images: Operand) -> list[Operand]:
    """Arguments of AXIS_ALIGNED_BBOX_TRANSFORM for one box."""
    return [rois, deltas, BATCH, images]


@pytest.mark.parametrize("deltas", [Q8A, Q8S], ids=lambda code: code.name)
def test_transform_of_quantised_boxes_is_of_level_29(deltas: OperandCode) -> None:
    inputs = transform_inputs(
        tensor(Q16A, [[0] * 4], 0.125), tensor(deltas, [[0] * 4], 1.0), tensor(Q16A, [[8, 8]])
    )

    assert feature_level(O.AXIS_ALIGNED_BBOX_TRANSFORM, inputs, [output(Q16A)]) == 29


@pytest.mark.parametrize(
    ("boxes", "images", "result", "message"),
    [
        ((0.25, 0), (0.125, 0), (0.125, 0), r"rois has the wrong quant.*0\.125.*got 0\.25 and 0"),
        ((0.125, 1), (0.125, 0), (0.125, 0), r"rois.*got 0\.125 and 1"),
        ((0.125, 0), (0.5, 0), (0.125, 0), r"image_info.*got 0\.5 and 0"),
        ((0.125, 0), (0.125, 0), (0.5, 0), r"the output has the wrong quant.*got 0\.5 and 0"),
    ],
)
def test_boxes_are_in_eighths(
    boxes: tuple[float, int], images: tuple[float, int], result: tuple[float, int], message: str
) -> None:
    inputs = transform_inputs(
        tensor(Q16A, [[1, 1, 9, 9]], *boxes),
        tensor(Q8A, [[0] * 4], 1.0),
        tensor(Q16A, [[80, 80]], *images),
    )

    with pytest.raises(LayerValidationError, match=message):
        run(O.AXIS_ALIGNED_BBOX_TRANSFORM, inputs, [output(Q16A, (1, 4), *result)])


def nms_inputs(scores: Operand, rois: Operand, max_detections: int, kernel: int) -> list[Operand]:
    """Arguments of BOX_WITH_NMS_LIMIT."""
    count = scores.dimensions[0]
    numbers = [real(0.25), integer(max_detections), integer(kernel), real(0.5), real(1), real(0.1)]
    return [scores, rois, tensor(I32, np.zeros(count)), *numbers]


def nms_outputs(scores: Operand, boxes: Operand) -> list[Operand]:
    """Outputs of BOX_WITH_NMS_LIMIT."""
    return [scores, boxes, output(I32, [0]), output(I32, [0])]


def test_declared_number_of_boxes_must_be_right() -> None:
    rois = tensor(F32, [[0, 0, 4, 4] * 2])
    outputs = [output(F32, [2]), output(F32, [2, 4]), output(I32, [2]), output(I32, [2])]

    with pytest.raises(LayerValidationError, match=r"another shape than declared.*\(2,\).*\(1,\)"):
        run(O.BOX_WITH_NMS_LIMIT, nms_inputs(tensor(F32, [[0, 0.5]]), rois, -1, 0), outputs)


def test_there_are_three_kernels() -> None:
    rois = tensor(F32, [[0, 0, 4, 4] * 2])
    outputs = nms_outputs(output(F32, [0]), output(F32, [0, 4]))

    with pytest.raises(LayerValidationError, match=r"unknown kernel.*2 \(GAUSSIAN\); got 3"):
        run(O.BOX_WITH_NMS_LIMIT, nms_inputs(tensor(F32, [[0, 0.5]]), rois, -1, 3), outputs)


def test_scores_keep_their_quantisation() -> None:
    rois = tensor(Q16A, [[0, 0, 4, 4] * 2], 0.125)
    inputs = nms_inputs(tensor(Q8S, [[0, 100]], 0.01, -8), rois, -1, 0)
    boxes = output(Q16A, [0, 4], 0.125)

    result = run(O.BOX_WITH_NMS_LIMIT, inputs, nms_outputs(output(Q8S, [0], 0.01, -8), boxes))
    assert result[0].tolist() == [100]
    with pytest.raises(LayerValidationError, match=r"quantisation.*-8; got 0\.01 and 0"):
        run(O.BOX_WITH_NMS_LIMIT, inputs, nms_outputs(output(Q8S, [0], 0.01), boxes))
    assert feature_level(O.BOX_WITH_NMS_LIMIT, inputs, nms_outputs(output(Q8S), boxes)) == 30


def post_inputs(score_threshold: float = 0.5, **numbers: int) -> list[Operand]:
    """Arguments of DETECTION_POSTPROCESSING for two boxes, far from each other."""
    arguments = {"regular": 0, "detections": 3, "per_detection": 2, "per_class": 1, **numbers}
    return [
        tensor(F32, [[[0.9, 0.5, 0.75], [0.9, 0.625, 0.25]]]),
        tensor(F32, np.zeros((1, 2, 4))),
        tensor(F32, [[0.5, 0.5, 1, 1], [0.5, 10.5, 1, 1]]),
        *[real(1.0)] * 4,
        flag(bool(arguments["regular"])),
        integer(arguments["detections"]),
        integer(arguments["per_detection"]),
        integer(arguments["per_class"]),
        real(score_threshold),
        real(0.5),
        flag(False),
    ]


POST_OUTPUTS = [output(F32), output(F32), output(I32), output(I32)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (post_inputs(-0.5), r"score_threshold is negative.*got -0\.5"),
        (post_inputs(detections=0), "max_detections is too small"),
        (post_inputs(per_detection=0), "max_classes_per_detection is too small"),
        (post_inputs(regular=1, per_class=0), "detections_per_class is too small"),
    ],
)
def test_impossible_limits_are_refused(inputs: list[Operand], message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        run(O.DETECTION_POSTPROCESSING, inputs, POST_OUTPUTS)


def region_inputs(values: Operand, rois: Operand, *samples: int, count: int = 1) -> list[Operand]:
    """Arguments of ROI_ALIGN or, without samples, of ROI_POOLING, one output element each."""
    batch = tensor(I32, np.zeros(count))
    strides = [real(2.0), real(4.0)]
    sizes = [integer(1), integer(1)]
    return [values, rois, batch, *sizes, *strides, *map(integer, samples), NHWC]


def test_only_align_takes_no_regions() -> None:
    none = tensor(F32, np.zeros((0, 4)))
    values = tensor(F32, PLANE)
    outputs = [output(F32)]

    (result,) = run(O.ROI_ALIGN, region_inputs(values, none, 0, 0, count=0), outputs)
    assert result.shape == (0, 1, 1, 1)
    with pytest.raises(LayerValidationError, match="rois has no elements"):
        run(O.ROI_POOLING, region_inputs(values, none, count=0), outputs)
    with pytest.raises(LayerValidationError, match="input has no elements"):
        run(
            O.ROI_ALIGN,
            region_inputs(tensor(F32, np.zeros((1, 0, 4, 1))), none, 0, 0, count=0),
            outputs,
        )


def test_pooling_keeps_the_inputs_quantisation_and_align_has_its_own() -> None:
    values, rois = tensor(Q8A, PLANE, 0.5, 0), tensor(Q16A, [[32, 32, 32, 32]], 0.125)
    other = [output(Q8A, (), 0.25, 0)]

    with pytest.raises(LayerValidationError, match=r"quantisation.*0\.5.*got 0\.25"):
        run(O.ROI_POOLING, region_inputs(values, rois), other)
    # The element 9 and its neighbours to the right and below have a mean of 11.5.
    (result,) = run(O.ROI_ALIGN, region_inputs(values, rois, 1, 1), other)
    assert result.reshape(-1).tolist() == [23]


def test_keypoints_are_boxes() -> None:
    inputs = [
        tensor(Q8A, np.zeros((1, 2, 2, 1)), 1.0),
        tensor(Q16A, [[0, 0, 64, 64]], 0.125),
        NHWC,
    ]
    scores = output(Q8A, (), 0.5, 7)

    outputs = run(O.HEATMAP_MAX_KEYPOINT, inputs, [scores, output(Q16A, (), 0.125)])
    assert outputs[0].tolist() == [[7]]
    assert outputs[1].tolist() == [[[16, 16]]]
    with pytest.raises(LayerValidationError, match=r"wrong quantisation.*got 0\.5"):
        run(O.HEATMAP_MAX_KEYPOINT, inputs, [scores, output(Q16A, (), 0.5)])


def test_proposals_have_anchors_of_a_type_of_their_own() -> None:
    inputs = [
        tensor(Q8A, np.full((1, 1, 1, 1), 200), 1 / 256),
        tensor(Q8A, np.zeros((1, 1, 1, 4)), 1.0),
        tensor(Q16S, [[-8, 0, 64, 64]], 0.125),
        tensor(Q16A, [[128, 128]], 0.125),
        real(1.0),
        real(1.0),
        integer(-1),
        integer(-1),
        real(0.5),
        real(0.0),
        NHWC,
    ]
    outputs = [output(Q8A, [0], 1 / 256), output(Q16A, [0, 4], 0.125), output(I32, [0])]

    scores, rois, batches = run(O.GENERATE_PROPOSALS, inputs, outputs)

    assert scores.tolist() == [200]
    assert rois.tolist() == [[0, 0, 64, 64]]
    assert batches.tolist() == [0]
    coarse = [*inputs[:2], tensor(Q16S, [[0, 0, 16, 16]], 0.5), *inputs[3:]]
    with pytest.raises(LayerValidationError, match=r"anchors has the wrong quant.*got 0\.5"):
        run(O.GENERATE_PROPOSALS, coarse, outputs)
