"""CpuRef's operations on regions of feature maps, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from armpy_reference.workloads.heatmap_max_keypoint import refine

from armpy.errors import LayerValidationError
from armpy.ops import HeatmapMaxKeypoint, PoolingAlgorithm, RoiAlign, RoiPooling
from armpy.ops.operation import Array
from armpy.types import DataLayout, DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

INDICES = DataType.SIGNED32
# Elements are 4 y + x, so that interpolating is exact.
PLANE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)


def float32(numbers: object) -> Array:
    """Numbers as float32 rounds them."""
    return np.array(numbers, np.float32)


def pooled(
    operation: RoiAlign | RoiPooling, region: list[float], values: np.ndarray = PLANE
) -> np.ndarray:
    """Run on one region of the first image."""
    inputs = [tensor(values), tensor([region]), tensor([0], INDICES)]
    return run_operation(operation, inputs)[0]


@pytest.mark.parametrize(
    ("operation", "region", "expected"),
    [
        # Samples at (1, 1), (2, 1), (1, 2), (2, 2).
        (RoiAlign((2, 2)), [0.5, 0.5, 2.5, 2.5], [5, 6, 9, 10]),
        (RoiAlign((2, 2), 2.0, 4.0), [2, 1, 10, 5], [5, 6, 9, 10]),
        (RoiAlign((2, 2), 1.0, 1.0, 3, 2), [0.5, 0.5, 2.5, 2.5], [5, 6, 9, 10]),
        # The input ends at 3; samples at 2.5 and 3.5 along both axes.
        (RoiAlign((2, 2)), [2, 2, 4, 4], [12.5, 13, 14.5, 15]),
        # A point is made one element wide.
        (RoiAlign((1, 1)), [1, 1, 1, 1], [7.5]),
        # Three samples along each axis: 0.5, 1.5, 2.5.
        (RoiAlign((1, 1)), [0, 0, 3, 3], [7.5]),
        (RoiPooling((2, 2)), [0, 0, 3, 3], [5, 7, 13, 15]),
        # Five elements in two parts of 2.5: rows 0 to 2 and 2 to 3, the last being cut off.
        (RoiPooling((2, 2)), [0, 0, 4, 4], [10, 11, 14, 15]),
        (RoiPooling((2, 2)), [1, 1, 1, 1], [5, 5, 5, 5]),
        # 0.5 is rounded to 1, 2.4 to 2.
        (RoiPooling((1, 1)), [0.5, 0, 2.4, 0], [2]),
        (RoiPooling((1, 1), 2.0, 4.0), [2, 0, 4, 0], [1]),
        # After the last element there is nothing.
        (RoiPooling((1, 1)), [4, 4, 4, 4], [0]),
    ],
)
def test_regions(
    operation: RoiAlign | RoiPooling, region: list[float], expected: list[float]
) -> None:
    check(pooled(operation, region).reshape(-1), float32(expected), 1e-6)
    channels_first = operation.with_attributes(data_layout=DataLayout.NCHW)
    swapped = pooled(channels_first, region, PLANE.transpose(0, 3, 1, 2))  # type: ignore[arg-type]  # the same kind
    check(swapped.reshape(-1), float32(expected), 1e-6)


def test_each_region_lies_in_its_image() -> None:
    values = np.concatenate([PLANE, PLANE + 100])
    regions = tensor([[0, 0, 0, 0]] * 3)

    (result,) = run_operation(RoiPooling(), [tensor(values), regions, tensor([1, 0, 1], INDICES)])

    check(result.reshape(-1), [100, 0, 100])


@pytest.mark.parametrize("operation", [RoiAlign((2, 3)), RoiPooling((2, 3))])
def test_no_regions_give_none(operation: RoiAlign | RoiPooling) -> None:
    inputs = [tensor(PLANE), tensor(np.zeros((0, 4))), tensor(np.zeros(0), INDICES)]

    assert run_operation(operation, inputs)[0].shape == (0, 2, 3, 1)


@pytest.mark.parametrize("operation", [RoiAlign((1, 1)), RoiPooling((1, 1))])
@pytest.mark.parametrize(
    ("region", "image", "message"),
    [
        ([0, 0, 1, 1], 1, r"an image that is not there.*0 to 0; got 1"),
        ([0, 0, 1, 1], -1, "an image that is not there"),
        ([-1, 0, 1, 1], 0, r"does not lie within.*x of 0 to 4.*got \[-1\.0"),
        ([0, 0, 1, 4.5], 0, "does not lie within"),
        ([2, 0, 1, 1], 0, "the wrong way round"),
    ],
)
def test_impossible_regions_are_refused(
    operation: RoiAlign | RoiPooling, region: list[float], image: int, message: str
) -> None:
    with pytest.raises(LayerValidationError, match=message):
        run_operation(operation, [tensor(PLANE), tensor([region]), tensor([image], INDICES)])


def test_stored_elements_are_averaged_with_integer_weights() -> None:
    values = tensor(PLANE + 3, DataType.QASYMM_U8, 1.0, 3)
    region = tensor([[4, 4, 20, 20]], DataType.QASYMM_U16, 0.125)
    output = declared(DataType.QASYMM_U8, 0.5, 10)

    (result,) = run_operation(RoiAlign((2, 2)), [values, region, tensor([0], INDICES)], [output])

    assert result.reshape(-1).tolist() == [20, 22, 28, 30]


def test_output_scale_far_below_the_inputs_is_refused() -> None:
    values = tensor(PLANE, DataType.QASYMM_U8, 1.0)
    region = tensor([[0, 0, 8, 8]], DataType.QASYMM_U16, 0.125)

    with pytest.raises(LayerValidationError, match=r"scale is too small.*0\.00392.*got 0\.001"):
        run_operation(
            RoiAlign((1, 1)),
            [values, region, tensor([0], INDICES)],
            [declared(DataType.QASYMM_U8, 0.001)],
        )


def test_empty_part_of_a_quantised_map_is_its_zero_point() -> None:
    values = tensor(PLANE + 100, DataType.QASYMM_S8, 1.0, -7)
    region = tensor([[32, 32, 32, 32]], DataType.QASYMM_U16, 0.125)

    (result,) = run_operation(RoiPooling((1, 1)), [values, region, tensor([0], INDICES)])

    assert result.reshape(-1).tolist() == [-7]


def keypoints(heatmap: object, region: list[float]) -> list[np.ndarray]:
    """Run on one region with one heat map."""
    maps = np.asarray(heatmap, np.float32)[None, :, :, None]
    return run_operation(HeatmapMaxKeypoint(), [tensor(maps), tensor([region])])


def test_peak_of_a_parabola_is_found_between_elements() -> None:
    y, x = np.mgrid[:3, :3]
    score, point = keypoints(10 - (x - 1.25) ** 2 - 2 * (y - 1) ** 2, [1, 2, 7, 8])

    # At (1.25, 1) from the first element's centre; elements are two wide.
    check(score, [[10]], 1e-6)
    check(point, [[[1 + 3.5, 2 + 3]]], 1e-6)


def test_edges_mirror_their_neighbours() -> None:
    # All derivatives at the corner are 0, so the peak is its centre.
    score, point = keypoints([[4, 2], [1, 0]], [0, 0, 8, 8])

    check(score, [[4]])
    check(point, [[[2, 2]]])


def test_flat_map_has_its_peak_at_the_first_element() -> None:
    score, point = keypoints(np.full((4, 4), 3.0), [0, 0, 8, 8])

    check(score, [[3]])
    check(point, [[[1, 1]]])


def test_peak_is_at_most_one_and_a_half_elements_away() -> None:
    # Along x: slope 0.45 and curvature -0.1, so 4.5 elements away; flat and falling along y.
    grid = float32([[0, -0.5, 0], [-0.5, 0, 0.4], [0, -0.5, 0]])

    step, height = refine(grid, np.float32(1e-5))

    check(step, [1.5, 0], 1e-5)
    check(height, 0.45 * 1.5 - 0.1 * 1.5**2 / 2, 1e-5)


def test_quantised_keypoints_are_in_steps_of_the_outputs_scale() -> None:
    heatmap = tensor(np.full((1, 2, 2, 1), 9), DataType.QASYMM_U8, 0.5, 3)
    region = tensor([[0, 0, 64, 64]], DataType.QASYMM_U16, 0.125)
    outputs = [declared(DataType.QASYMM_U8, 0.25, 1), declared(DataType.QASYMM_U16, 0.125)]

    score, point = run_operation(HeatmapMaxKeypoint(), [heatmap, region], outputs)

    assert score.tolist() == [[13]]
    assert point.tolist() == [[[16, 16]]]


def test_region_of_a_heat_map_that_is_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(LayerValidationError, match="the wrong way round"):
        keypoints(np.zeros((2, 2)), [1, 0, 0, 1])


def test_channels_first_heat_maps() -> None:
    operation = replace(HeatmapMaxKeypoint(), data_layout=DataLayout.NCHW)
    heatmap = tensor([[[[4, 2], [1, 0]], [[0, 1], [2, 4]]]])

    score, point = run_operation(operation, [heatmap, tensor([[0, 0, 8, 8]])])

    check(score, [[4, 4]])
    check(point, [[[2, 2], [6, 6]]])


@pytest.mark.parametrize(
    "operation", [RoiAlign(), RoiPooling(), RoiAlign(is_free=True), RoiAlign(half_pixel=True)]
)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(4))
def test_regions_that_are_no_numbers_are_refused(
    operation: RoiAlign | RoiPooling, odd: float, place: int
) -> None:
    region = [0.0, 0.0, 2.0, 2.0]
    region[place] = odd
    with pytest.raises(
        LayerValidationError, match=r"wrong way round|cannot be used|not lie within"
    ):
        pooled(operation, region)


@pytest.mark.parametrize("algorithm", [PoolingAlgorithm.AVERAGE, PoolingAlgorithm.MAX])
def test_samples_outside_of_the_image_are_0_whatever_is_at_its_border(
    algorithm: PoolingAlgorithm,
) -> None:
    image = PLANE.copy()
    image[0, 0, 0, 0] = np.nan
    operation = RoiAlign((1, 2), 1.0, 1.0, 2, 1, algorithm=algorithm, is_free=True)

    # Samples of the first half lie 3 columns ahead of the image, those of the second within.
    outside, inside = pooled(operation, [-4, 2, 4, 3], image).reshape(-1)
    assert outside == 0
    assert np.isfinite(inside)
    assert pooled(operation, [-4, 0, 4, 1], image).reshape(-1)[0] == 0


def test_what_is_no_number_reaches_the_parts_that_it_lies_in() -> None:
    image = PLANE.copy()
    image[0, 0, 0, 0] = np.nan

    check(pooled(RoiPooling((2, 2)), [0, 0, 3, 3], image).reshape(-1), [np.nan, 7, 13, 15])
    # Samples at 0.5 and 1.5, and at 2.5 and 3.5, which is as 3.
    check(pooled(RoiAlign((2, 2)), [0, 0, 4, 4], image).reshape(-1)[1:], [6.75, 12, 13.75])
    assert np.isnan(pooled(RoiAlign((2, 2)), [0, 0, 4, 4], image).reshape(-1)[0])
