"""Depthwise convolutions agree with CpuRef on every instruction set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from armpy import Network, ops
from armpy.ops.shapes import PaddingSpec
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    check_against_reference,
    isas_of_this_test,
    random_array,
    run_reference,
)

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
NONE, RELU = ops.FusedActivation.NONE, ops.FusedActivation.RELU
RELU1, RELU6 = ops.FusedActivation.RELU1, ops.FusedActivation.RELU6


class Case(NamedTuple):
    """A layer; each input channel makes `multiplier` of the output's."""

    image: tuple[int, int, int, int]
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: PaddingSpec = SAME
    dilation: tuple[int, int] = (1, 1)
    activation: ops.FusedActivation = NONE
    multiplier: int = 1
    has_bias: bool = True


CASES = {
    "two images, a tail of channels": Case((2, 7, 7, 67), activation=RELU),
    "without bias": Case((1, 5, 14, 80), has_bias=False),
    "stride 2": Case((1, 15, 14, 24), stride=(2, 2), activation=RELU6),
    "strides that differ": Case((1, 11, 14, 67), stride=(3, 1)),
    "padding beyond the window": Case((1, 3, 3, 67), padding=((4, 5), (0, 4))),
    "window larger than the image": Case((1, 2, 7, 67), (5, 5), activation=RELU1),
    "image of one pixel": Case((1, 1, 1, 80)),
    "dilated": Case((1, 12, 9, 67), (2, 3), dilation=(3, 2)),
    "large window": Case((1, 9, 7, 80), (7, 7)),
    "stride beyond the window": Case((1, 12, 19, 67), (2, 2), (3, 3), VALID),
    "three channels": Case((1, 9, 7, 3), (7, 2)),
    "channels made of one": Case((1, 9, 7, 1), (4, 3), (2, 2), multiplier=19),
    "channels made of several": Case((2, 6, 7, 17), multiplier=4, activation=RELU),
}
"""Few kinds of kernels, as making them takes long."""

WORDS = ("two images, a tail of channels", "dilated", "channels made of one")


def network_of(case: Case, *infos: TensorInfo) -> Network:
    """A network of one layer with the infos of input, weights, bias and output."""
    source, weights, bias, output = infos
    network = Network()
    operands = [network.input("x", source)]
    for number, info in enumerate((weights, bias)[: 1 + case.has_bias]):
        values = random_array(info, number)
        if info.data_type is DataType.SIGNED32:
            values %= 4001
        operands.append(
            network.constant(values, data_type=info.data_type, quantization=info.quantization)
        )
    operation = ops.DepthwiseConvolution2d(
        stride=case.stride,
        padding=case.padding,
        dilation=case.dilation,
        activation=case.activation,
    )
    network.output("y", network.add(operation, *operands, output=output))
    return network


def check_everywhere(network: Network, source: TensorInfo) -> None:
    """Check a network on every instruction set of this processor."""
    inputs = {"x": random_array(source, 5)}
    expected = run_reference(network, inputs)
    for isa in isas_of_this_test():
        check_against_reference(network, inputs, isa, expected)


def shapes_of(case: Case) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of the weights and of the bias."""
    channels = case.image[3] * case.multiplier
    return (1, *case.kernel, channels), (channels,)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_float32(name: str) -> None:
    case = CASES[name]
    shapes = (case.image, *shapes_of(case), None)
    infos = [TensorInfo(shape, DataType.FLOAT32) for shape in shapes]
    check_everywhere(network_of(case, *infos), infos[0])


U8, S8, SYMMETRIC = DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_signed_bytes_with_scales_per_channel(name: str) -> None:
    case = CASES[name]
    weights, bias = shapes_of(case)
    scales = Quantization.per_axis(list(np.linspace(0.002, 0.02, weights[3])), 3)
    infos = (
        TensorInfo(case.image, S8, quantization=Quantization.per_tensor(0.5, -11)),
        TensorInfo(weights, SYMMETRIC, quantization=scales),
        TensorInfo(bias, DataType.SIGNED32),
        TensorInfo(None, S8, quantization=Quantization.per_tensor(0.9, 7)),
    )
    check_everywhere(network_of(case, *infos), infos[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WORDS)
def test_unsigned_bytes_with_a_zero_point_of_the_weights(name: str) -> None:
    case = CASES[name]
    weights, bias = shapes_of(case)
    infos = (
        TensorInfo(case.image, U8, quantization=Quantization.per_tensor(0.5, 99)),
        TensorInfo(weights, U8, quantization=Quantization.per_tensor(0.01, 151)),
        TensorInfo(bias, DataType.SIGNED32),
        TensorInfo(None, U8, quantization=Quantization.per_tensor(0.8, 120)),
    )
    check_everywhere(network_of(case, *infos), infos[0])


def test_a_scale_that_no_int32_holds_saturates() -> None:
    case = Case((1, 7, 7, 67), (1, 1), multiplier=1)
    infos = (
        TensorInfo(case.image, U8, quantization=Quantization.per_tensor(100.0, 3)),
        TensorInfo(shapes_of(case)[0], SYMMETRIC, quantization=Quantization.per_tensor(10.0)),
        TensorInfo(shapes_of(case)[1], DataType.SIGNED32),
        TensorInfo(None, U8, quantization=Quantization.per_tensor(0.01, 128)),
    )
    check_everywhere(network_of(case, *infos), infos[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", [DataType.FLOAT32, U8])
def test_a_clamp_after_the_layer_is_part_of_it(data_type: DataType) -> None:
    case = Case((1, 7, 7, 67))
    is_float = data_type is DataType.FLOAT32
    scale = None if is_float else Quantization.per_tensor(0.1, 4)
    infos = (
        TensorInfo(case.image, data_type, quantization=scale),
        TensorInfo(shapes_of(case)[0], data_type, quantization=scale),
        TensorInfo(shapes_of(case)[1], data_type if is_float else DataType.SIGNED32),
        TensorInfo(None, data_type, quantization=scale),
    )
    network = network_of(case, *infos)
    convolved = network.build().outputs[0]
    clamp = ops.Activation(ops.ActivationFunction.BOUNDED_RELU, 1.5, -0.5)
    network.output("z", network.add(clamp, convolved, output=infos[3]))
    check_everywhere(network, infos[0])
