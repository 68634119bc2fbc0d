"""Normalisations: as CpuRef on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import ops
from armpy.ops.tolerance import Tolerance
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .one_layer import check_layer

F16, F32 = DataType.FLOAT16, DataType.FLOAT32


@pytest.mark.sampled(3)
@pytest.mark.parametrize("axes", [(-1,), (0,), (1,), (1, 2)], ids=str)
@pytest.mark.parametrize("radius", [0, 2, 9])
def test_neighbours_of_any_axis_count(axes: tuple[int, ...], radius: int) -> None:
    info = TensorInfo((2, 5, 7, 19), F32)
    operation = ops.Normalization(radius=radius, axes=axes, alpha=0.3, beta=0.5, k=2.0)
    check_layer(operation, [info], info)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("beta", [1.0, 0.75, 0.0, -0.5])
def test_sums_are_taken_to_any_power(beta: float) -> None:
    info = TensorInfo((3, 40), F32)
    check_layer(ops.Normalization(radius=5, beta=beta, k=0.5), [info], info)


def test_neighbours_of_float16() -> None:
    info = TensorInfo((3, 4, 40), F16)
    arrays = [np.random.default_rng(1).normal(size=info.known_shape).astype(np.float16)]
    check_layer(ops.Normalization(axes=(1,)), [info], info, Tolerance(2.0**-11, 2.0**-10), arrays)


@pytest.mark.parametrize("layout", [DataLayout.NHWC, DataLayout.NCHW], ids=lambda v: v.name)
@pytest.mark.parametrize(
    "shape", [(2, 5, 7, 19), (1, 1, 2, 67), (3, 17, 9, 1), (2, 16, 8, 2), (1, 3, 67, 64)], ids=str
)
def test_images_are_brought_to_one_mean(layout: DataLayout, shape: tuple[int, ...]) -> None:
    info = TensorInfo(shape, F32)
    operation = ops.InstanceNormalization(gamma=1.5, beta=-0.3, eps=1e-4, data_layout=layout)
    check_layer(operation, [info], info)


@pytest.mark.parametrize("kind", [ops.LayerNormalization, ops.RmsNormalization])
@pytest.mark.parametrize("shape", [(3, 5, 19), (7, 1), (1, 768), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("num_factors", [0, 1, 2])
def test_rows_are_brought_to_variance_1(
    kind: type[ops.LayerNormalization], shape: tuple[int, ...], num_factors: int
) -> None:
    axes = (-2, -1) if len(shape) == 4 else (-1,)
    info, row = TensorInfo(shape, F32), TensorInfo(shape[-len(axes) :], F32)
    factors = [row] * (num_factors if kind is ops.LayerNormalization else min(num_factors, 1))
    check_layer(kind(axes, eps=1e-3), [info, *factors], info)
