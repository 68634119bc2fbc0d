"""Random loops run inside programs give what CpuRef gives turn by turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.graph import Graph, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    Concat,
    ElementwiseBinary,
    FullyConnected,
    Gather,
    If,
    Reshape,
    Slice,
    Transpose,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

NUM_LOOPS = effort(25)
NUMBER = TensorInfo((), DataType.SIGNED32)
ROWS, COLUMNS = 3, 4
MATRIX = TensorInfo((ROWS, COLUMNS), DataType.FLOAT32)
LESS = Comparison(ComparisonOperation.LESS)
BINARY = [
    ElementwiseBinary(kind)
    for kind in (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MAXIMUM)
]
TANH = Activation(ActivationFunction.TANH, 1.0, 1.0)


class _Maker:
    """Makes up graphs whose values are matrices of one shape."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def step(self, net: Network, index: Value, values: list[Value], depth: int) -> list[Value]:
        """Values that are made of others."""
        kind = int(self.random.integers(0, 9 if depth else 7))
        x, y = (values[int(self.random.integers(len(values)))] for _ in range(2))
        if kind < 2:
            return [net.add(BINARY[int(self.random.integers(len(BINARY)))], x, y)]
        if kind == 2:
            return [net.add(TANH, x)]
        if kind == 3:
            weights = self.random.standard_normal((COLUMNS, COLUMNS)).astype(np.float32) / 4
            return [net.add(FullyConnected(), x, net.constant(weights))]
        if kind == 4:
            turned = net.add(Transpose((1, 0)), x)
            return [net.add(Reshape((ROWS, COLUMNS)), turned)]
        if kind == 5:
            both = net.add(Concat(0), x, y)
            row = int(self.random.integers(0, ROWS + 1))
            return [net.add(Slice((row, 0), (ROWS, COLUMNS)), both)]
        if kind == 6:
            return [net.add(BINARY[0], net.add(Gather(0), x, index), y)]
        if kind == 7:
            choice = If(*(self.branch(len(values), depth - 1) for _ in range(2)))
            is_early = net.add(LESS, index, net.constant(np.array(1, np.int32)))
            return list(net.add_layer(choice, (is_early, index, *values)).outputs)
        loop = self.loop(len(values), depth - 1)
        count = net.constant(np.array(0, np.int32))
        return list(net.add_layer(loop, (count, *values)).outputs[1:])

    def branch(self, num_values: int, depth: int) -> Graph:
        """A graph of an If that gives two matrices."""

        def build(net: Network, index: Value, *inputs: Value) -> list[Value]:
            values = list(inputs)
            for _ in range(int(self.random.integers(0, 4))):
                values += self.step(net, index, values, depth)
            return [values[int(number)] for number in self.random.integers(0, len(values), 2)]

        return _graph([NUMBER, *[MATRIX] * num_values], build)

    def loop(self, num_values: int, depth: int) -> While:
        """A loop of at most three turns, of a number that is known or computed."""
        infos = [NUMBER, *[MATRIX] * num_values]
        turns, step = int(self.random.integers(0, ROWS + 1)), int(self.random.integers(1, 3))
        is_known = self.random.random() < 0.5

        def below(net: Network, i: Value, *_: Value) -> list[Value]:
            limit = net.constant(np.array(turns, np.int32))
            if is_known:
                return [net.add(LESS, i, limit)]
            return [net.add(Comparison(ComparisonOperation.GREATER), limit, i)]

        def body(net: Network, i: Value, *carried: Value) -> list[Value]:
            values = list(carried)
            for _ in range(int(self.random.integers(1, 6))):
                values += self.step(net, i, values, depth)
            chosen = self.random.integers(0, len(values), num_values)
            following = net.add(BINARY[0], i, net.constant(np.array(step, np.int32)))
            return [following, *(values[int(number)] for number in chosen)]

        return While(_graph(infos, below), _graph(infos, body))

    def network(self) -> tuple[Graph, int]:
        """A network with a loop, and how many inputs it has."""
        num_values = int(self.random.integers(1, 5))

        def build(net: Network, *inputs: Value) -> list[Value]:
            start = net.constant(np.array(int(self.random.integers(0, 2)), np.int32))
            values = [*inputs, net.add(TANH, inputs[0])][-num_values:]
            loop = self.loop(len(values), 2)
            made = list(net.add_layer(loop, (start, *values)).outputs)
            return [*made, net.add(BINARY[0], made[-1], inputs[0])]

        return _graph([MATRIX] * num_values, build), num_values


def _graph(infos: list[TensorInfo], build: Callable[..., list[Value]]) -> Graph:
    """A graph whose inputs a function takes and whose outputs it returns."""
    net = Network()
    inputs = [net.input(f"in{index}", info) for index, info in enumerate(infos)]
    for index, value in enumerate(build(net, *inputs)):
        net.output(f"out{index}", value)
    return net.build()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", range(NUM_LOOPS))
def test_random_loops_give_what_cpu_ref_gives(seed: int) -> None:
    maker = _Maker(seed)
    graph, num_inputs = maker.network()
    shape = (ROWS, COLUMNS)
    inputs = [maker.random.standard_normal(shape).astype(np.float32) for _ in range(num_inputs)]
    results: list[list[Array]] = []
    for backend in ("NumbaAcc", "CpuRef"):
        with Model(graph, Runtime(RuntimeOptions(backends=[backend]))) as model:
            if backend == "NumbaAcc":
                assert model.placement is not None
                assert set(model.placement.layers_by_backend) == {"NumbaAcc"}
            for _ in range(2):  # the first execution leaves no state
                result = model(*inputs)
            results.append(list(result) if isinstance(result, tuple) else [result])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
