"""Depthwise convolutions of bytes with few channels, of which whole rows are computed at once."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy import Network, ops
from armpy.graph import SubgraphView
from armpy.ops import FusedActivation, Padding
from armpy.ops.operation import Array
from armpy.ops.shapes import PaddingSpec
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import ISAS, isas_of_this_test, run_compiled, run_reference

NONE, RELU = FusedActivation.NONE, FusedActivation.RELU


def network(
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: PaddingSpec,
    activation: FusedActivation,
) -> tuple[Network, dict[str, Array]]:
    """A network of one layer, and its input."""
    random = np.random.default_rng(1)
    channels = shape[3]
    net = Network()
    image = net.input(
        "x", TensorInfo(shape, DataType.QASYMM_S8, Quantization.per_tensor(0.05, -17))
    )
    weights = net.constant(
        random.integers(-127, 128, (1, *kernel, channels)).astype(np.int8),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization.per_axis(random.uniform(0.004, 0.02, channels).tolist(), 3),
    )
    bias = net.constant(random.integers(-3000, 3000, channels).astype(np.int32))
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.3, 5))
    operation = ops.DepthwiseConvolution2d(stride=stride, padding=padding, activation=activation)
    net.output("y", net.add(operation, image, weights, bias, output=output))
    return net, {"x": random.integers(-128, 128, shape).astype(np.int8)}


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "activation"),
    [
        ((1, 9, 21, 8), (3, 3), (1, 1), Padding.SAME, RELU),
        ((2, 11, 33, 2), (3, 3), (2, 1), Padding.SAME, NONE),
        ((1, 8, 40, 16), (2, 5), (1, 1), Padding.VALID, RELU),
        ((1, 7, 18, 4), (5, 3), (1, 1), ((0, 3), (2, 0)), NONE),
    ],
    ids=["odd height", "two images", "no borders", "own borders"],
)
def test_results_are_exactly_the_references(
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: PaddingSpec,
    activation: FusedActivation,
) -> None:
    net, inputs = network(shape, kernel, stride, padding, activation)
    expected = run_reference(net, inputs)["y"]
    assert len(np.unique(expected)) > 10, "the case compares constants"
    for isa in isas_of_this_test():
        np.testing.assert_array_equal(run_compiled(net, inputs, isa)["y"], expected, isa.name)


def test_registers_are_filled_with_several_pixels() -> None:
    net, _ = network((1, 9, 32, 8), (3, 3), (1, 1), Padding.SAME, NONE)
    graph = net.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    (kernel,) = (kernel for kernel in program.kernels if kernel.name == "depthwise_u8")
    assert kernel.parameters[0] != 8
