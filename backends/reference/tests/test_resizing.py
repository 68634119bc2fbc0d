"""CpuRef's Resize on small images worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops import Resize, ResizeMethod
from armpy.types import DataLayout, DataType
from armpy_testing.run_operation import run_operation, tensor


def resized(row: list[float], width: int, data_type: DataType, **attributes: object) -> list[float]:
    """One row of an image with one channel at another width."""
    scale = 0.5 if data_type.is_quantized else None
    image = tensor([[[[value] for value in row]]], data_type, scale)
    operation = Resize((1, width)).with_attributes(**attributes)
    (result,) = run_operation(operation, [image])
    values: list[float] = result.reshape(-1).tolist()
    return values


BILINEAR = {"method": ResizeMethod.BILINEAR}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [0.0, 4.0, 8.0, 8.0]),
        ({"align_corners": True}, [0.0, 8 / 3, 16 / 3, 8.0]),
        ({"half_pixel_centers": True}, [0.0, 2.0, 6.0, 8.0]),
    ],
)
def test_bilinear_positions(attributes: dict[str, object], expected: list[float]) -> None:
    result = resized([0, 8], 4, DataType.FLOAT32, **BILINEAR, **attributes)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [1, 1, 2, 2, 3]),
        ({"align_corners": True}, [1, 2, 2, 3, 3]),
        ({"half_pixel_centers": True}, [1, 1, 2, 3, 3]),
    ],
)
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.QASYMM_S8])
def test_nearest_positions(
    attributes: dict[str, object], expected: list[float], data_type: DataType
) -> None:
    assert resized([1, 2, 3], 5, data_type, **attributes) == expected


@pytest.mark.parametrize(
    ("data_type", "row", "expected"),
    [
        (DataType.FLOAT16, [0, 1], [0, 0.5, 1, 1]),
        # Halfway between 0 and 1: up for uint8, away from zero for signed types.
        (DataType.QASYMM_U8, [0, 1], [0, 1, 1, 1]),
        (DataType.QASYMM_S8, [0, 1], [0, 1, 1, 1]),
        (DataType.QASYMM_S8, [0, -1], [0, -1, -1, -1]),
        (DataType.QSYMM_S16, [0, -1], [0, -1, -1, -1]),
        (DataType.QSYMM_S16, [-32768, 32767], [-32768, -1, 32767, 32767]),
    ],
)
def test_bilinear_rounding(data_type: DataType, row: list[float], expected: list[float]) -> None:
    assert resized(row, 4, data_type, **BILINEAR) == expected


def test_integer_samples_with_aligned_corners() -> None:
    result = resized([0, 90], 4, DataType.QASYMM_S8, **BILINEAR, align_corners=True)
    assert result == [0, 30, 60, 90]


def test_integer_samples_with_half_pixel_centers() -> None:
    result = resized([0, 80], 4, DataType.QASYMM_S8, **BILINEAR, half_pixel_centers=True)
    assert result == [0, 20, 60, 80]


@pytest.mark.parametrize("align_corners", [False, True])
def test_one_pixel_stays_what_it_is(align_corners: bool) -> None:
    for data_type in (DataType.FLOAT32, DataType.QASYMM_S8):
        assert resized([7], 1, data_type, **BILINEAR, align_corners=align_corners) == [7]


def test_rows_are_interpolated_like_columns() -> None:
    image = tensor([[[[0], [4]], [[8], [12]]]])
    (result,) = run_operation(Resize((4, 4), ResizeMethod.BILINEAR), [image])
    assert result[0, :, :, 0].tolist() == [
        [0, 2, 4, 4],
        [4, 6, 8, 8],
        [8, 10, 12, 12],
        [8, 10, 12, 12],
    ]


@pytest.mark.parametrize("method", list(ResizeMethod))
def test_channels_first_is_the_same_with_other_axes(method: ResizeMethod) -> None:
    image = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    (last,) = run_operation(Resize((5, 7), method), [tensor(image)])
    channels_first = Resize((5, 7), method, data_layout=DataLayout.NCHW)
    (first,) = run_operation(channels_first, [tensor(image.transpose(0, 3, 1, 2))])
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))
