"""Resize against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops import Resize, ResizeMethod
from armpy.types import DataType
from tests.differential.litert_oracle import litert_or_skip
from tests.differential.single_operator import (
    QUANTIZED_TYPES,
    check_operator,
    integers,
    random_operand,
    random_shape,
)

litert_or_skip()

NUM_CASES = 100


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, *QUANTIZED_TYPES], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("align_corners", "half_pixel_centers"), [(False, False), (True, False), (False, True)]
)
@pytest.mark.parametrize("method", list(ResizeMethod), ids=lambda m: m.name)
def test_resize(
    method: ResizeMethod, align_corners: bool, half_pixel_centers: bool, data_type: DataType
) -> None:
    rng = np.random.default_rng(1)
    bilinear = method is ResizeMethod.BILINEAR
    for _ in range(NUM_CASES):
        shape = (int(rng.integers(1, 3)), *random_shape(rng, 2, 1, 12), int(rng.integers(1, 4)))
        check_operator(
            Resize(
                method=method,
                align_corners=align_corners,
                half_pixel_centers=half_pixel_centers,
            ),
            "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR",
            [random_operand(rng, data_type, shape), integers(random_shape(rng, 2, 1, 20))],
            options={"align_corners": align_corners, "half_pixel_centers": half_pixel_centers},
        )


def test_nearest_neighbor_with_aligned_corners_and_half_pixel_centers() -> None:
    rng = np.random.default_rng(2)
    for _ in range(NUM_CASES):
        shape = (1, *random_shape(rng, 2, 1, 12), 2)
        check_operator(
            Resize(align_corners=True, half_pixel_centers=True),
            "RESIZE_NEAREST_NEIGHBOR",
            [random_operand(rng, DataType.FLOAT32, shape), integers(random_shape(rng, 2, 1, 20))],
            options={"align_corners": True, "half_pixel_centers": True},
        )
