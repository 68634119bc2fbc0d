"""CpuRef's normalisations, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops import InstanceNormalization, Normalization
from armpy.types import DataLayout, DataType
from armpy_testing.run_operation import check, run_operation, tensor

# Sums of squares of neighbours at most one away: 5, 14, 13.
ROW = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Normalization(1, alpha=1.0, beta=1.0, k=0.0), [1 / 5, 2 / 14, 3 / 13]),
        (Normalization(1, alpha=2.0, beta=1.0, k=4.0), [1 / 14, 2 / 32, 3 / 30]),
        (Normalization(1, alpha=1.0, beta=0.5, k=11.0), [1 / 4, 2 / 5, 3 / 24**0.5]),
        (Normalization(0, alpha=1.0, beta=1.0, k=0.0), [1, 1 / 2, 1 / 3]),
        (Normalization(7, alpha=1.0, beta=1.0, k=0.0), [1 / 14, 2 / 14, 3 / 14]),
    ],
)
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_elements_are_divided_by_their_neighbours(
    operation: Normalization, expected: list[float], data_type: DataType
) -> None:
    tolerance = 1e-6 if data_type is DataType.FLOAT32 else 1e-3

    check(run_operation(operation, [tensor(ROW, data_type)])[0], expected, tolerance)


def test_neighbours_lie_along_the_given_axes() -> None:
    values = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]

    first = run_operation(Normalization(1, 1.0, 1.0, 0.0, (0,)), [tensor(values)])[0]
    both = run_operation(Normalization(1, 1.0, 1.0, 1.0, (0, 1)), [tensor(values)])[0]

    check(first[:, :2], [[0.5, 0.5], [0.5, 0.5]])
    check(both, np.array([[1 / 5, 1 / 5, 0], [1 / 5, 1 / 5, 0]]), 1e-6)


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_each_channel_of_each_image_has_its_own_mean_and_variance(data_type: DataType) -> None:
    # Mean 3 and variance 5 of the first channel, 10 and 0 of the second.
    values = np.array([[[0, 2], [4, 6]], [[10, 10], [10, 10]]])[None]
    wanted = np.array([[[-3, -1], [1, 3]], [[0, 0], [0, 0]]])[None] * 2 / np.sqrt(6) + 0.5
    channels_first = InstanceNormalization(2.0, 0.5, 1.0, DataLayout.NCHW)
    channels_last = InstanceNormalization(2.0, 0.5, 1.0)

    (first,) = run_operation(channels_first, [tensor(values, data_type)])
    (last,) = run_operation(channels_last, [tensor(values.transpose(0, 2, 3, 1), data_type)])

    check(first, wanted, 1e-6 if data_type is DataType.FLOAT32 else 1e-3)
    check(last, first.transpose(0, 2, 3, 1))
