"""Random networks give the same bits with and without the passes that run by default."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

from armpy import DataType, Network, OptimizerOptions, Quantization, TensorInfo, ops
from armpy.compiler import PassContext
from armpy.errors import LayerValidationError
from armpy.graph import Graph, Value
from armpy.ops import PaddingMode
from armpy.ops.operation import Operation
from armpy_testing.models.networks import f32
from tests.support.passes import (
    OFF,
    after_passes,
    bits,
    check_equal,
    idle_passes,
    random_inputs,
    run,
)

QUANTIZED = tuple(
    TensorInfo(None, kind, Quantization.per_tensor(scale, zero))
    for kind in (DataType.QASYMM_S8, DataType.QASYMM_U8)
    for scale, zero in ((0.25, 3), (1 / 3, 3))
)
SHAPES = ((1, 4, 4, 2), (2, 1, 4, 4), (8, 4), (1, 32), (2, 2, 8))


class Recorded(Network):
    """A network that knows which values layers read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[Value | None] = set()

    def add(
        self,
        operation: Operation,
        *inputs: Value | None,
        name: str = "",
        output: TensorInfo | None = None,
    ) -> Value:
        value = super().add(operation, *inputs, name=name, output=output)
        self.read.update(inputs)
        return value


class Drawing:
    """A network that grows by random layers."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.net = Recorded()
        self.values = [self.net.input("x", f32(1, 4, 4, 2)), self.net.input("w", f32(1, 4, 4, 2))]

    def network(self, length: int) -> Network:
        """A network of so many layers; every value that nothing reads is an output."""
        while length:
            value = self.values[-1 - min(int(self.random.exponential(1)), len(self.values) - 1)]
            try:
                self.values.append(self.layer(value))
            except LayerValidationError:
                continue
            length -= 1
        loose = [value for value in self.values if value not in self.net.read]
        for index, value in enumerate([*loose, self.values[len(self.values) // 2]]):
            self.net.output(f"y{index}", value)
        return self.net

    def layer(self, value: Value) -> Value:
        """One more layer."""
        draw = self.random
        info, shape = value.info, value.info.known_shape
        rank = len(shape)
        kind = draw.integers(0, 12)
        if kind <= 2 and rank:
            return self.net.add(ops.Transpose(tuple(map(int, draw.permutation(rank)))), value)
        if kind <= 4:
            fitting = [s for s in SHAPES if np.prod(s) == np.prod(shape)]
            if fitting:
                return self.net.add(ops.Reshape(fitting[draw.integers(len(fitting))]), value)
            return self.net.add(ops.Reshape((-1,)), value)
        if kind <= 6:
            if info.data_type.is_quantized and draw.integers(4) == 0:
                return self.renamed(value)
            if info.data_type.is_quantized:
                return self.net.add(ops.Dequantize(), value)
            return self.net.add(
                ops.Quantize(), value, output=QUANTIZED[draw.integers(len(QUANTIZED))]
            )
        if kind == 7:
            return self.net.add(ops.Activation(ops.ActivationFunction.RELU), value)
        if kind == 8 and not info.data_type.is_quantized:
            length = shape[-1] if rank and draw.integers(2) else 1
            constant = self.net.constant(draw.normal(size=length).astype(np.float32))
            return self.net.add(self.sum(), value, constant)
        if kind == 9 and not info.data_type.is_quantized:
            others = [v for v in self.values if v.info.data_type is info.data_type]
            return self.net.add(self.sum(), value, others[draw.integers(len(others))])
        if kind == 10 and rank == 4:
            return self.window(value)
        if kind == 11 and rank < 4:
            return self.net.add(ops.BroadcastTo((2, *shape)), value)
        return self.net.add(ops.ReverseV2((0,)), value)

    def renamed(self, value: Value) -> Value:
        """Stored integers that stand for other numbers, or the same."""
        kind = value.info.data_type
        plain = {DataType.QASYMM_U8: DataType.UNSIGNED8}.get(kind, DataType.SIGNED8)
        stored = self.net.add(ops.Cast(), value, output=TensorInfo(None, plain))
        alike = [data_type for data_type in QUANTIZED if data_type.data_type is kind]
        return self.net.add(ops.Cast(), stored, output=alike[self.random.integers(len(alike))])

    def sum(self) -> Operation:
        """An elementwise operation."""
        kinds = (ops.BinaryOperation.ADD, ops.BinaryOperation.MUL, ops.BinaryOperation.MAXIMUM)
        return ops.ElementwiseBinary(kinds[self.random.integers(3)])

    def window(self, value: Value) -> Value:
        """A frame and a convolution or a pool."""
        draw, info = self.random, value.info
        top, bottom, left, right = map(int, draw.integers(0, 2, 4))
        pad_value = (0.0, 0.0, -np.inf, 1.0)[draw.integers(4)]
        mode = PaddingMode.CONSTANT if draw.integers(4) else PaddingMode.SYMMETRIC
        if info.data_type.is_quantized:
            pad_value = max(pad_value, -1000.0)
        pad = ops.Pad(((0, 0), (top, bottom), (left, right), (0, 0)), pad_value, mode)
        framed = self.net.add(pad, value)
        if draw.integers(2):
            return self.net.add(ops.Pooling2d(pool_size=(2, 2)), framed)
        channels = info.known_shape[3]
        weights = draw.integers(-20, 20, (1, 2, 2, channels))
        constant = self.net.constant(
            weights.astype(info.data_type.dtype),
            data_type=info.data_type,
            quantization=info.quantization,
        )
        output = info.with_shape(None)
        return self.net.add(ops.DepthwiseConvolution2d(), framed, constant, output=output)


@pytest.mark.parametrize("seed", range(60))
def test_results_are_the_same_to_the_bit(seed: int) -> None:
    graph = Drawing(seed).network(14).build()
    simple = after_passes(graph, OptimizerOptions())
    assert len(simple.layers) <= len(graph.layers)
    if simple is not graph:
        check_equal_on_reference(graph, simple)


def check_equal_on_reference(graph: Graph, made: Graph) -> None:
    inputs = random_inputs(graph)
    with np.errstate(all="ignore"):
        expected = run(graph, inputs)
        for name, got in run(made, inputs).items():
            np.testing.assert_array_equal(bits(got), bits(expected[name]), name)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60, 70))
def test_results_are_the_same_on_compiled_backends(seed: int) -> None:
    graph = Drawing(seed).network(10).build()
    backends = (NumbaBackend(), ReferenceBackend())
    check_equal(graph, after_passes(graph, OptimizerOptions(), *backends))


@pytest.mark.parametrize("seed", range(40))
def test_a_pass_that_is_taken_for_idle_finds_nothing(seed: int) -> None:
    graph = Drawing(seed).network(14).build()
    context = PassContext(OptimizerOptions(), (ReferenceBackend(),))
    for name, run_pass in idle_passes(graph).items():
        assert run_pass(graph, context) is graph, name


@pytest.mark.parametrize("seed", range(60))
def test_moved_conversions_give_the_same_bits(seed: int) -> None:
    graph = Drawing(seed).network(14).build()
    options = OptimizerOptions(passes={**OFF, "move_conversions": True})
    simple = after_passes(graph, options)
    if simple is not graph:
        check_equal_on_reference(graph, simple)
