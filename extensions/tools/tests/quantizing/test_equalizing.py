"""Equalising the channels between layers changes no result, and evens weights out."""

import numpy as np
import numpy.typing as npt

from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.graph import Graph
from armpy.ops.activations import FusedActivation
from armpy_tools.quantize.cross_layer_equalization import equalized

from ..float_networks import FLOATS

GENERATOR = np.random.default_rng(11)


def chain(activation: FusedActivation) -> Graph:
    """A convolution of uneven channels, one by channel, and one that mixes them."""
    net = Network()
    x = net.input("x", TensorInfo((1, 6, 6, 3), FLOATS))
    uneven = 10.0 ** np.arange(-2, 3).reshape(5, 1, 1, 1)
    first = ops.Convolution2d(activation=activation)
    weights = net.constant((GENERATOR.normal(0, 1, (5, 3, 3, 3)) * uneven).astype(np.float32))
    bias = net.constant(GENERATOR.normal(0, 1, 5).astype(np.float32))
    y = net.add(first, x, weights, bias, name="first")
    by_channel = net.constant(GENERATOR.normal(0, 1, (1, 3, 3, 5)).astype(np.float32))
    y = net.add(ops.DepthwiseConvolution2d(activation=activation), y, by_channel, name="second")
    mixing = net.constant(GENERATOR.normal(0, 1, (4, 1, 1, 5)).astype(np.float32))
    net.output("y", net.add(ops.Convolution2d(), y, mixing, name="third"))
    return net.build()


def run(graph: Graph, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    with Model(graph, Runtime(RuntimeOptions(backends=["CpuRef"]))) as model:
        return next(iter(model.run({"x": array}).values()))


def spread(graph: Graph, name: str) -> float:
    """Greatest by least range of the output channels of a layer's weights."""
    layer = next(candidate for candidate in graph.layers if candidate.name == name)
    weights = layer.constant("weights")
    assert weights is not None
    ranges = np.abs(weights).max(axis=(1, 2, 3))
    return float(ranges.max() / ranges.min())


def test_results_stay_and_ranges_become_alike() -> None:
    graph = chain(FusedActivation.RELU)
    image = GENERATOR.normal(0, 1, (1, 6, 6, 3)).astype(np.float32)
    equal = equalized(graph)
    np.testing.assert_allclose(run(equal, image), run(graph, image), rtol=1e-3, atol=1e-3)
    assert spread(equal, "first") < 0.1 * spread(graph, "first")


def test_a_clamp_at_six_is_left_alone() -> None:
    graph = chain(FusedActivation.RELU6)
    assert equalized(graph) is graph


def test_a_tensor_that_others_read_is_left_alone() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 4), FLOATS))
    weights = [net.constant(GENERATOR.normal(0, 1, (4, 4)).astype(np.float32)) for _ in range(2)]
    middle = net.add(ops.FullyConnected(), x, weights[0])
    net.output("middle", middle)
    net.output("y", net.add(ops.FullyConnected(), middle, weights[1]))
    graph = net.build()
    assert equalized(graph) is graph
