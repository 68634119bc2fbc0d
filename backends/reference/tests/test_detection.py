"""CpuRef's operations on boxes, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy.ops import (
    AxisAlignedBboxTransform,
    BoxWithNmsLimit,
    DetectionPostProcess,
    GenerateProposals,
    NmsKernel,
    SoftNonMaxSuppression,
)
from armpy.ops.operation import Array
from armpy.types import DataLayout, DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

INDICES = DataType.SIGNED32
BOXES = DataType.QASYMM_U16
NAN, INF = float("nan"), float("inf")


def float32(numbers: object) -> Array:
    """Numbers as float32 rounds them."""
    return np.array(numbers, np.float32)


def test_box_is_moved_by_parts_of_its_size_scaled_by_exponentials_and_clipped() -> None:
    # 20 wide, 40 high, centre (20, 40): to centre (30, 30) and size (20, 80), y from -10 to 70.
    deltas = [[0.5, -0.25, 0, np.log(2), 0, 0, 0, 0]]

    (result,) = run_operation(
        AxisAlignedBboxTransform(),
        [
            tensor([[10, 20, 30, 60]]),
            tensor(deltas),
            tensor([1], INDICES),
            tensor([[9, 9], [64, 50]]),
        ],
    )

    check(result, [[20, 0, 40, 64, 10, 20, 30, 60]], 1e-6)


def test_quantised_boxes_are_transformed_as_real_numbers() -> None:
    # The same in eighths, with deltas in quarters from 10; log(2) is not one of them.
    (result,) = run_operation(
        AxisAlignedBboxTransform(),
        [
            tensor([[80, 160, 240, 480]], BOXES, 0.125),
            tensor([[12, 9, 10, 10]], DataType.QASYMM_U8, 0.25, 10),
            tensor([0], INDICES),
            tensor([[512, 400]], BOXES, 0.125),
        ],
    )

    # Centre (30, 30): x from 20 to 40, y from 10 to 50.
    assert result.tolist() == [[160, 80, 320, 400]]


@pytest.mark.parametrize(
    ("box", "image", "message"),
    [
        ([0, 0, 1, 1], 2, r"an image that is not there.*0 to 1; got 2 in row 0"),
        ([0, 0, 1, 1], -1, r"an image that is not there.*got -1"),
        ([2, 0, 1, 1], 0, r"the wrong way round.*got \[2\.0, 0\.0, 1\.0, 1\.0\] in row 0"),
        ([0, 2, 1, 1], 0, "the wrong way round"),
    ],
)
def test_impossible_boxes_are_refused(box: list[int], image: int, message: str) -> None:
    inputs = [
        tensor([box]),
        tensor([[0] * 4]),
        tensor([image], INDICES),
        tensor([[9, 9], [9, 9]]),
    ]

    with pytest.raises(LayerValidationError, match=message):
        run_operation(AxisAlignedBboxTransform(), inputs)


def test_no_boxes_are_transformed_to_none() -> None:
    (result,) = run_operation(
        AxisAlignedBboxTransform(),
        [
            tensor(np.zeros((0, 4))),
            tensor(np.zeros((0, 8))),
            tensor(np.zeros(0), INDICES),
            tensor([[9, 9]]),
        ],
    )

    assert result.shape == (0, 8)


# Overlaps: 0.9 of the first two, none with the third.
THREE = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [20, 20, 30, 30]])
LIMIT = BoxWithNmsLimit(0.1, -1, NmsKernel.HARD, 0.5, 0.5, 0.05)


def limited(
    operation: BoxWithNmsLimit, scores: object, boxes: object = THREE, images: object = (4, 4, 4)
) -> list[Array]:
    """Run on boxes that are the same for every class."""
    scores_tensor = tensor(scores)
    boxes_per_class = np.tile(np.asarray(boxes), scores_tensor[1].shape[1])
    return run_operation(
        operation, [scores_tensor, tensor(boxes_per_class), tensor(images, INDICES)]
    )


@pytest.mark.parametrize(
    ("kernel", "scores", "rows"),
    [
        (NmsKernel.HARD, [0.9, 0.7], [0, 2]),
        (NmsKernel.LINEAR, [0.9, 0.7, 0.8 * 0.1], [0, 2, 1]),
        (NmsKernel.GAUSSIAN, [0.9, 0.7, 0.8 * np.exp(-0.81 / 0.5)], [0, 2, 1]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_kernel_lowers_the_scores_of_overlapping_boxes(
    kernel: NmsKernel, scores: list[float], rows: list[int]
) -> None:
    outputs = limited(replace(LIMIT, kernel=kernel), [[1, 0.9], [1, 0.8], [1, 0.7]])

    check(outputs[0], scores, 1e-6)
    check(outputs[1], THREE[rows])
    check(outputs[2], [1] * len(rows))
    check(outputs[3], [4] * len(rows))


def test_results_are_limited_over_all_classes_and_ordered_by_class() -> None:
    scores = [[0, 0.3, 0.9], [0, 0, 0], [0, 0.5, 0.8]]

    outputs = limited(replace(LIMIT, max_detections=3), scores)

    check(outputs[0], float32([0.5, 0.9, 0.8]))
    check(outputs[2], [1, 2, 2])


def test_images_are_treated_one_by_one() -> None:
    same = [[0, 0, 10, 10]] * 3

    outputs = limited(LIMIT, [[0, 0.6], [0, 0.9], [0, 0.7]], same, (7, 2, 2))

    check(outputs[0], float32([0.6, 0.9]))
    check(outputs[3], [7, 2])


def test_score_must_be_above_its_threshold() -> None:
    outputs = limited(replace(LIMIT, score_threshold=0.5), [[0, 0.5], [0, 0.25], [0, 0.125]])

    assert [part.shape for part in outputs] == [(0,), (0, 4), (0,), (0,)]


def test_score_that_was_lowered_to_0_stays_where_no_threshold_drops_it() -> None:
    outputs = limited(replace(LIMIT, nms_score_threshold=0.0), [[0, 0.9], [0, 0.8], [0, 0.7]])

    check(outputs[0], float32([0.9, 0.7, 0]))


def test_no_boxes_give_none() -> None:
    outputs = limited(LIMIT, np.zeros((0, 2)), np.zeros((0, 4)), np.zeros(0))

    assert [part.shape for part in outputs] == [(0,), (0, 4), (0,), (0,)]


def test_box_of_the_background_that_is_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"the wrong way round.*in row 1"):
        limited(LIMIT, [[0, 0.9], [0, 0.8]], [[0, 0, 1, 1], [0, 3, 1, 1]], (0, 0))


def test_quantised_scores_are_lowered_as_real_numbers() -> None:
    scores = tensor([[0, 100], [0, 90]], DataType.QASYMM_U8, 0.01)
    boxes = tensor(np.repeat(THREE[:2] * 8, 2, axis=0).reshape(2, 8), BOXES, 0.125)
    outputs = [
        declared(DataType.QASYMM_U8, 0.01),
        declared(BOXES, 0.125),
        declared(INDICES),
        declared(INDICES),
    ]

    results = run_operation(
        replace(LIMIT, kernel=NmsKernel.LINEAR),
        [scores, boxes, tensor([0, 0], INDICES)],
        outputs,
    )

    # 0.9 times one minus the overlap of 0.9.
    assert results[0].tolist() == [100, 9]
    assert results[1].tolist() == (THREE[:2] * 8).tolist()


# One row of two positions, 8 apart, with two anchors that overlap by 7/8.
ANCHORS = tensor([[0, 0, 8, 8], [0, 0, 8, 7]])
PROPOSE = GenerateProposals(height_stride=4.0, width_stride=8.0, iou_threshold=0.5)


def proposed(
    operation: GenerateProposals,
    image: object = (8, 16),
    scores: object = (0.5, 0.75, 0.875, 0.625),
) -> list[Array]:
    """Run with deltas of 0."""
    scores_tensor = tensor(np.array(scores).reshape(1, 1, 2, 2))
    return run_operation(
        operation, [scores_tensor, tensor(np.zeros((1, 1, 2, 8))), ANCHORS, tensor([image])]
    )


def test_best_anchor_of_each_position_is_proposed() -> None:
    scores, boxes, images = proposed(PROPOSE)

    check(scores, [0.875, 0.75])
    check(boxes, [[8, 0, 16, 8], [0, 0, 8, 7]])
    check(images, [0, 0])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"iou_threshold": 0.9}, [0.875, 0.75, 0.625, 0.5]),
        ({"iou_threshold": 0.875}, [0.875, 0.75]),
        ({"post_nms_max": 1}, [0.875]),
        ({"post_nms_max": 0}, []),
        ({"pre_nms_max": 1}, [0.875]),
        ({"pre_nms_max": 0}, [0.875, 0.75]),
        ({"min_size": 7.0}, [0.875, 0.5]),
        ({"min_size": 8.0}, []),
    ],
)
def test_proposals_are_limited(changes: dict[str, float], expected: list[float]) -> None:
    check(proposed(replace(PROPOSE, **changes))[0], expected)  # type: ignore[arg-type]  # by name


def test_box_with_its_centre_on_the_edge_of_the_image_is_dropped() -> None:
    # The second position's boxes are clipped to x from 8 to 8.
    check(proposed(PROPOSE, image=(8, 8))[0], [0.75])


def test_proposals_of_each_image_are_separate_in_channels_first_order() -> None:
    scores = tensor([[[[0.5]], [[0.25]]], [[[0.125]], [[0.75]]]])
    deltas = np.zeros((2, 8, 1, 1))
    deltas[0, 0] = 0.5

    outputs = run_operation(
        replace(PROPOSE, data_layout=DataLayout.NCHW),
        [scores, tensor(deltas), ANCHORS, tensor([[8, 16], [8, 16]])],
    )

    check(outputs[0], [0.5, 0.25, 0.75])
    check(outputs[1], [[4, 0, 12, 8], [0, 0, 8, 7], [0, 0, 8, 7]])
    check(outputs[2], [0, 0, 1])


# Two anchors at one place and one far away; background and two classes.
ENCODINGS = tensor(np.zeros((1, 3, 4)))
CLASS_SCORES = tensor([[[0, 0.9, 0.8], [0, 0.75, 0.95], [0, 0.5, 0.4]]])
PLACES = tensor([[0.5, 0.5, 1, 1], [0.5, 0.5, 1, 1], [0.5, 10.5, 1, 1]])
NEAR, FAR, NOTHING = [0, 0, 1, 1], [0, 10, 1, 11], [0, 0, 0, 0]
POST = DetectionPostProcess(max_detections=2)


def detected(operation: DetectionPostProcess) -> list[list[object]]:
    """Boxes, classes, scores and counts of the first image."""
    boxes, classes, scores, count = run_operation(operation, [ENCODINGS, CLASS_SCORES, PLACES])
    return [
        boxes[0].tolist(),
        classes[0].tolist(),
        np.round(scores[0], 3).tolist(),
        count.tolist(),
    ]


def rounded(*numbers: float) -> list[float]:
    """As float32 rounds them."""
    values: list[float] = np.round(float32(numbers), 3).tolist()
    return values


def test_boxes_are_suppressed_by_their_best_class() -> None:
    assert detected(POST) == [[NEAR, FAR], [1, 0], rounded(0.95, 0.5), [2]]


def test_classes_are_suppressed_one_by_one() -> None:
    regular = replace(POST, max_detections=3, use_regular_nms=True)

    assert detected(regular) == [[NEAR, NEAR, NOTHING], [1, 0, 0], rounded(0.95, 0.9, 0), [2]]
    both = detected(replace(regular, detections_per_class=2))
    assert both == [[NEAR, NEAR, FAR], [1, 0, 0], rounded(0.95, 0.9, 0.5), [3]]


def test_each_box_is_reported_with_its_best_classes() -> None:
    two = replace(POST, max_classes_per_detection=2)

    detections = [[NEAR, NEAR, FAR, FAR], [1, 0, 0, 1], rounded(0.95, 0.75, 0.5, 0.4)]
    assert detected(two) == [*detections, [2]]
    assert detected(replace(two, compact_rows=True)) == [*detections, [4]]


def test_boxes_with_fewer_classes_leave_rows_free_unless_rows_are_compact() -> None:
    three = replace(POST, max_classes_per_detection=3)

    assert detected(three)[1:] == [
        [1, 0, 0, 0, 1, 0],
        rounded(0.95, 0.75, 0, 0.5, 0.4, 0),
        [2],
    ]
    assert detected(replace(three, compact_rows=True))[1:] == [
        [1, 0, 0, 1, 0, 0],
        rounded(0.95, 0.75, 0.5, 0.4, 0, 0),
        [4],
    ]


def test_labels_may_count_the_background() -> None:
    assert detected(replace(POST, background_in_labels=True))[1] == [2, 1]


def test_columns_ahead_of_the_classes_are_background() -> None:
    assert detected(replace(POST, num_classes=3))[1] == [2, 1]
    assert detected(replace(POST, num_classes=1))[1:3] == [[0, 0], rounded(0.95, 0.4)]


@pytest.mark.parametrize("regular", [False, True])
def test_score_equal_to_its_threshold_counts_unless_thresholds_are_strict(regular: bool) -> None:
    loose = replace(POST, nms_score_threshold=0.5, use_regular_nms=regular, detections_per_class=2)

    far_is_found = FAR in detected(replace(loose, max_detections=3))[0]
    assert far_is_found
    assert FAR not in detected(replace(loose, max_detections=3, strict_thresholds=True))[0]


def test_overlap_equal_to_its_threshold_is_allowed_unless_thresholds_are_strict() -> None:
    equal = replace(POST, nms_iou_threshold=1.0)

    assert detected(equal)[0] == [NEAR, NEAR]
    assert detected(replace(equal, strict_thresholds=True))[0] == [NEAR, FAR]


def test_encodings_are_divided_by_their_scales() -> None:
    encodings = tensor([[[5, -10, 5 * np.log(2), 0, 9], [0] * 5, [0] * 5]])
    post = DetectionPostProcess(scale_y=10.0, scale_x=10.0, scale_h=5.0, scale_w=5.0)
    scores = tensor([[[0, 1], [0, 0.5], [0, 0.25]]])

    boxes = run_operation(post, [encodings, scores, PLACES])[0]

    # Centre (1, -0.5), twice as high.
    check(boxes, [[[0, -1, 2, 0]]], 1e-6)


def test_score_that_is_no_number_is_not_chosen_by_class() -> None:
    outputs = limited(LIMIT, [[NAN, NAN], [NAN, 0.8], [0, 0.7]])

    check(outputs[0], float32([0.8, 0.7]))
    check(outputs[1], THREE[1:])


def test_box_that_is_no_number_overlaps_nothing() -> None:
    boxes = np.array([[0, 0, 10, 10] * 2, [0, 0, 10, 9, 0, NAN, 10, 9]])
    inputs = [tensor([[0, 0.9], [0, 0.8]]), tensor(boxes), tensor([0, 0], INDICES)]
    scores, chosen, *_ = run_operation(LIMIT, inputs)

    check(scores, float32([0.9, 0.8]))
    np.testing.assert_array_equal(chosen, float32([boxes[0, :4], boxes[1, 4:]]))


def test_box_of_the_background_that_is_no_number_is_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"the wrong way round.*in row 1"):
        limited(LIMIT, [[0, 0.9], [0, 0.8]], [[0, 0, 1, 1], [0, 0, 1, NAN]], (0, 0))


@pytest.mark.parametrize("kernel", [NmsKernel.HARD, NmsKernel.LINEAR])
def test_infinite_score_is_lowered_to_0(kernel: NmsKernel) -> None:
    same = [[0, 0, 10, 10]] * 2
    outputs = limited(replace(LIMIT, kernel=kernel), [[0, INF], [0, INF]], same, (0, 0))

    check(outputs[0], float32([INF]))


def test_proposal_whose_score_is_no_number_comes_last() -> None:
    apart = replace(PROPOSE, iou_threshold=1.0)

    check(proposed(apart, scores=(NAN, 0.75, 0.875, 0.625))[0][:3], [0.875, 0.75, 0.625])
    assert np.isnan(proposed(apart, scores=(NAN, 0.75, 0.875, 0.625))[0][3:]).tolist() == [True]
    limited_to = replace(apart, pre_nms_max=3)
    check(proposed(limited_to, scores=(NAN, 0.75, 0.875, 0.625))[0], [0.875, 0.75, 0.625])


@pytest.mark.parametrize("place", range(4))
def test_proposal_whose_box_is_no_number_is_dropped(place: int) -> None:
    deltas = np.zeros((1, 1, 2, 8))
    deltas[0, 0, 1, place] = NAN  # of the best
    scores = tensor(np.array((0.5, 0.75, 0.875, 0.625)).reshape(1, 1, 2, 2))
    outputs = run_operation(PROPOSE, [scores, tensor(deltas), ANCHORS, tensor([(8, 16)])])

    check(outputs[0], [0.75, 0.625])


@pytest.mark.parametrize("image", [(NAN, 16), (8, NAN)])
def test_nothing_is_proposed_in_an_image_of_no_size(image: object) -> None:
    assert proposed(PROPOSE, image=image)[0].shape == (0,)


@pytest.mark.parametrize(("regular", "expected"), [(True, [0.8, 0.75]), (False, [0.75, 0.5])])
def test_detection_whose_score_is_no_number_is_left_out(
    regular: bool, expected: list[float]
) -> None:
    scores = tensor([[[NAN, NAN, 0.8], [0, 0.75, 0.1], [0, 0.5, 0.4]]])
    operation = replace(POST, use_regular_nms=regular, nms_score_threshold=0.2)
    outputs = run_operation(operation, [ENCODINGS, scores, PLACES])

    check(outputs[2][0], float32(expected))


def test_detected_box_that_is_no_number_overlaps_nothing() -> None:
    encodings = np.zeros((1, 3, 4))
    encodings[0, 1, 0] = NAN
    outputs = run_operation(
        replace(POST, max_detections=3), [tensor(encodings), CLASS_SCORES, PLACES]
    )

    check(outputs[2][0], float32([0.95, 0.9, 0.5]))
    assert np.isnan(outputs[0][0, 0]).any()


def test_soft_suppression_leaves_out_what_is_no_number() -> None:
    operation = SoftNonMaxSuppression(3, iou_threshold=0.5)
    boxes = tensor([[0, 0, 10, 10], [0, 0, 10, NAN], [0, 0, 10, 9]])
    indices, scores, count = run_operation(operation, [boxes, tensor([0.9, 0.8, 0.7])])

    # The second shares nothing, and the third overlaps the first.
    assert (indices.tolist(), count.tolist()) == ([0, 1, 0], 2)
    check(scores, float32([0.9, 0.8, 0]))
    indices, _, count = run_operation(operation, [boxes, tensor([NAN, 0.8, 0.7])])
    assert (indices.tolist(), count.tolist()) == ([1, 2, 0], 2)


@pytest.mark.parametrize("place", range(4))
def test_moved_box_that_is_no_number_is_refused(place: int) -> None:
    box = np.array([[0.0, 0, 1, 1]])
    box[0, place] = NAN
    inputs = [tensor(box), tensor([[0] * 4]), tensor([0], INDICES), tensor([[9, 9]])]
    with pytest.raises(LayerValidationError, match="the wrong way round"):
        run_operation(AxisAlignedBboxTransform(), inputs)
