"""Networks of the other layout, as files have them, and what is left of their transposes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

from armpy import Network, OptimizerOptions, ops
from armpy.compiler.passes.transposes import Cost, cheapest, total
from armpy.errors import LayerValidationError
from armpy.graph import Graph, Value
from armpy_testing.models.networks import ADD, MUL, RELU, f32
from tests.support.passes import after_pass, after_passes, bits, names, random_inputs, run

TO_NCHW = ops.Transpose((0, 3, 1, 2))
TO_NHWC = ops.Transpose((0, 2, 3, 1))
MEAN = ops.Reduce(ops.ReduceOperation.MEAN, (2, 3), keep_dims=True)


class ChannelsFirst:
    """A network of images with their channels first, whose windows want them last."""

    def __init__(self, seed: int, *shape: int) -> None:
        self.random = np.random.default_rng(seed)
        self.net = Network()
        self.image = self.net.input("x", f32(*shape))

    def window(self, image: Value) -> Value:
        """A convolution between transposes, or a pool."""
        last = self.net.add(TO_NHWC, image)
        if self.random.integers(3) == 0:
            pool = ops.Pooling2d(pool_size=(2, 2))
            return self.net.add(TO_NCHW, self.net.add(pool, last))
        weights = self.random.integers(-4, 5, (4, 1, 1, last.info.known_shape[3]))
        filters = self.net.constant(weights.astype(np.float32))
        return self.net.add(TO_NCHW, self.net.add(ops.Convolution2d(), last, filters))

    def layer(self, image: Value, other: Value) -> Value:
        """A layer that can do with any layout."""
        net, draw, kind = self.net, self.random, self.random.integers(0, 14)
        n, c, h, w = image.info.known_shape
        if kind <= 1:
            return net.add(RELU, image)
        if kind == 2:
            return net.add(ADD, image, other)
        if kind == 3:
            return net.add(ops.Concat(int(draw.integers(-4, 4))), image, other)
        if kind == 4:
            return net.add(ops.Pad(((0, 0), (0, 1), (1, 0), (2, 1)), -1.0), image)
        if kind == 5:
            return net.add(MUL, image, net.add(MEAN, image))
        if kind == 6:
            return net.add(ops.Softmax(axis=int(draw.integers(-4, 4))), image)
        if kind == 7:
            return net.add(ops.Slice((0, 0, 1, 0), (-1, -1, -1, w - 1)), image)
        if kind == 8:
            sizes = (1, 0, 1, 1)
            step = ops.StridedSlice((0, 0, -1, 0), sizes, (1, 1, -1, 1), 2, 0b1111)
            return net.add(step, image)
        if kind == 9:
            return net.add(ops.ReverseV2((int(draw.integers(-3, 0)),)), image)
        if kind == 10:
            row = net.constant(draw.integers(1, 5, (c, 1, 1)).astype(np.float32))
            return net.add(MUL, image, row)
        if kind == 11:
            groups = net.add(ops.Reshape((n, 2, c // 2, h, w)), image)
            dealt = net.add(ops.Transpose((0, 2, 1, 3, 4)), groups)
            return net.add(ops.Reshape((n, c, h, w)), dealt)
        if kind == 12:
            return net.add(ops.Tile((1, 2, 1, 1)), image)
        return self.window(image)

    def network(self, length: int) -> Graph:
        """A network of so many layers or windows."""
        images = [self.window(self.image)]
        while len(images) < length:
            near = images[-1 - min(int(self.random.exponential(0.5)), len(images) - 1)]
            other = images[self.random.integers(len(images))]
            try:
                images.append(self.layer(near, other))
            except LayerValidationError:
                images.append(self.window(near))
        self.net.output("y", images[-1])
        self.net.output("z", self.net.add(ops.ArgMinMax(axis=1), images[-2]))
        return self.net.build()


def moved(graph: Graph) -> int:
    """Elements that transposes move."""
    return sum(
        layer.output.info.num_elements
        for layer in graph.layers
        if isinstance(layer.operation, ops.Transpose)
    )


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(80))
def test_results_are_the_same_to_the_bit(seed: int) -> None:
    graph = ChannelsFirst(seed, 1, 4, 5, 6).network(9)
    rewritten = after_pass("cancel_transposes", graph)
    assert (rewritten is graph) or moved(rewritten) < moved(graph)
    assert names(rewritten).count("Transpose") <= names(graph).count("Transpose")
    inputs = random_inputs(graph)
    with np.errstate(all="ignore"):
        expected = run(graph, inputs)
        for name, got in run(rewritten, inputs).items():
            np.testing.assert_array_equal(bits(got), bits(expected[name]), name)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(80, 86))
def test_results_are_the_same_on_compiled_backends(seed: int) -> None:
    graph = ChannelsFirst(seed, 1, 4, 5, 6).network(9)
    backends = (NumbaBackend(), ReferenceBackend())
    simple = after_passes(graph, OptimizerOptions(), *backends)
    assert moved(simple) <= moved(graph)
    inputs = random_inputs(graph)
    expected = run(graph, inputs, NumbaBackend())
    for name, got in run(simple, inputs, NumbaBackend()).items():
        # The order in which a compiled sum adds up depends on where the axis lies.
        np.testing.assert_allclose(got, expected[name], 1e-5, 1e-5, err_msg=name)


def test_a_network_of_channels_first_transposes_its_input_and_output_only() -> None:
    first = ChannelsFirst(0, 1, 4, 8, 8)
    net = first.net
    filters = net.constant(np.ones((4, 1, 1, 4), np.float32))

    def convolution(image: Value) -> Value:
        last = net.add(ops.Convolution2d(), net.add(TO_NHWC, image), filters)
        return net.add(TO_NCHW, last)

    x = net.add(RELU, convolution(first.image))
    x = net.add(ADD, x, net.add(RELU, convolution(x)))
    squeezed = net.add(ops.Activation(ops.ActivationFunction.SIGMOID), net.add(MEAN, x))
    x = net.add(MUL, x, squeezed)
    net.output("y", net.add(ops.Concat(1), x, convolution(x)))
    rewritten = after_pass("cancel_transposes", net.build())
    turned = [layer for layer in rewritten.layers if isinstance(layer.operation, ops.Transpose)]
    assert [layer["input"].name for layer in turned[:1]] == ["x"]
    assert [layer.output for layer in turned[1:]] == [*rewritten.outputs]


def test_a_transpose_in_front_of_a_mean_moves_after_it() -> None:
    net = Network()
    x = net.input("x", f32(1, 8, 8, 4))
    net.output("y", net.add(ops.Reduce(ops.ReduceOperation.MEAN, (2, 3)), net.add(TO_NCHW, x)))
    (layer,) = after_pass("cancel_transposes", net.build()).layers
    assert layer.operation == ops.Reduce(ops.ReduceOperation.MEAN, (1, 2))


def test_a_transpose_in_front_of_a_search_for_the_largest_moves_after_it() -> None:
    net = Network()
    x = net.input("x", f32(1, 8, 8, 4))
    net.output("y", net.add(ops.ArgMinMax(axis=1), net.add(TO_NCHW, x)))
    (layer,) = after_pass("cancel_transposes", net.build()).layers
    assert layer.operation == ops.ArgMinMax(axis=3)


@pytest.mark.parametrize("seed", range(30))
def test_the_choice_of_layers_costs_the_least(seed: int) -> None:
    draw = np.random.default_rng(seed)
    layers = tuple("abcdef")
    costs = []
    for _ in range(8):
        sides = [
            tuple(str(layer) for layer in draw.choice(layers, draw.integers(0, 3), replace=False))
            for _ in range(2)
        ]
        costs.append(Cost(int(draw.integers(1, 9)), *sides))
    every = (frozenset(some) for size in range(7) for some in combinations(layers, size))
    least = min(total(costs, choice)[0] for choice in every)
    assert total(costs, cheapest(costs))[0] == least
