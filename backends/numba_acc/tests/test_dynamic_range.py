"""Products of floats with int8 weights: as CpuRef's but for float32's roundings."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, ops
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .one_layer import isas_for
from .support import check_against_reference, run_reference

F32, S8 = DataType.FLOAT32, DataType.QASYMM_S8
SAME = ops.Padding.SAME
RELU, RELU6 = ops.FusedActivation.RELU, ops.FusedActivation.RELU6


def quantization_of(channels: int, axis: int, has_several: bool) -> Quantization:
    """One scale, or one for each channel."""
    if not has_several:
        return Quantization.per_tensor(0.013, 0)
    scales = np.random.default_rng(5).uniform(0.001, 0.02, channels).astype(np.float32)
    return Quantization(tuple(map(float, scales)), (0,) * channels, axis)


def check_dynamic(
    operation: Operation,
    image: Array,
    weights: tuple[int, ...],
    axis: int,
    has_several: bool,
    has_bias: bool = True,
) -> None:
    """Compare one layer with CpuRef."""
    random = np.random.default_rng(1)
    network = Network()
    operands = [network.input("x", TensorInfo(image.shape, F32))]
    stored = random.integers(-127, 128, weights).astype(np.int8)
    quantization = quantization_of(weights[axis], axis, has_several)
    operands.append(network.constant(stored, data_type=S8, quantization=quantization))
    if has_bias:
        operands.append(network.constant(random.normal(size=weights[axis]).astype(np.float32)))
    network.output("y", network.add(operation, *operands))
    feeds = {"x": image}
    expected = run_reference(network, feeds)
    for isa in isas_for(operation):
        check_against_reference(network, feeds, isa, expected)


def random_image(*shape: int) -> Array:
    """Floats whose range is another one in each image."""
    random = np.random.default_rng(2)
    image = random.normal(size=shape) * 3 + 0.7
    return (image * np.arange(1, shape[0] + 1).reshape(-1, *(1,) * (len(shape) - 1))).astype(
        np.float32
    )


CONVOLUTIONS = {
    "pointwise, more than a panel": (ops.Convolution2d(), (1, 25, 5, 64), (67, 1, 1, 64)),
    "two images, a depth of 3": (
        ops.Convolution2d(padding=SAME, activation=RELU6),
        (2, 9, 8, 3),
        (17, 3, 3, 3),
    ),
    "one channel, strides": (
        ops.Convolution2d(padding=SAME, stride=(2, 2)),
        (1, 49, 10, 1),
        (64, 10, 4, 1),
    ),
    "dilated": (ops.Convolution2d(dilation=(2, 2)), (3, 9, 11, 5), (16, 2, 3, 5)),
    "one pixel": (ops.Convolution2d(activation=RELU), (2, 1, 1, 33), (5, 1, 1, 33)),
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("has_several", [False, True])
def test_convolutions(name: str, has_several: bool) -> None:
    operation, image, weights = CONVOLUTIONS[name]
    check_dynamic(operation, random_image(*image), weights, 0, has_several)


@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize("shape", [(1, 67), (19, 130)], ids=str)
def test_vectors_have_scales_of_their_own(is_asymmetric: bool, shape: tuple[int, int]) -> None:
    operation = ops.FullyConnected(asymmetric_quantize_inputs=is_asymmetric)
    check_dynamic(operation, random_image(*shape), (23, shape[1]), 0, False, has_bias=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("has_several", [False, True])
def test_depthwise_convolutions(multiplier: int, has_several: bool) -> None:
    operation = ops.DepthwiseConvolution2d(padding=SAME, stride=(2, 1), activation=RELU)
    weights = (1, 3, 3, 19 * multiplier)
    check_dynamic(operation, random_image(2, 9, 7, 19), weights, 3, has_several)


@pytest.mark.parametrize("value", [0.0, 1e-42, -1e-38, 3e38, -7.0, 5.0])
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_images_of_one_number(value: float, is_asymmetric: bool) -> None:
    image = np.full((1, 4, 4, 5), value, np.float32)
    check_dynamic(ops.Convolution2d(), image, (6, 1, 1, 5), 0, is_asymmetric)


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_halves_between_integers_go_away_from_zero(is_asymmetric: bool) -> None:
    image = (np.arange(-508, 509, dtype=np.float32) / 4).reshape(1, 1, -1, 1)
    check_dynamic(ops.Convolution2d(), image, (6, 1, 1, 1), 0, is_asymmetric)


@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_rows_with_nan_are_nan(is_asymmetric: bool, sign: int) -> None:
    image = random_image(3, 67)
    image[1, 7] = np.copysign(np.nan, sign)
    operation = ops.FullyConnected(asymmetric_quantize_inputs=is_asymmetric)
    check_dynamic(operation, image, (23, 67), 0, False, has_bias=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("has_several", [False, True])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
def test_transposed_convolutions(stride: tuple[int, int], has_several: bool) -> None:
    operation = ops.TransposeConvolution2d(stride=stride, padding=SAME, activation=RELU)
    check_dynamic(operation, random_image(2, 5, 6, 7), (9, 3, 4, 7), 0, has_several)
