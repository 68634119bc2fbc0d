"""Layers that together are a function of one byte: a table, with CpuRef's bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import SubgraphView, Value
from armpy.ops.tolerance import EXACT

from .support import (
    ISAS,
    check_against_reference,
    isas_of_this_test,
    run_reference,
)

S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8
SIGMOID = ops.Activation(ops.ActivationFunction.SIGMOID)
RELU6 = ops.Activation(ops.ActivationFunction.BOUNDED_RELU, 6.0, 0.0)
EXP = ops.ElementwiseUnary(ops.UnaryOperation.EXP)
ADD, SUB, MUL = (
    ops.ElementwiseBinary(operation)
    for operation in (ops.BinaryOperation.ADD, ops.BinaryOperation.SUB, ops.BinaryOperation.MUL)
)

Build = Callable[[Network, Value, DataType], Value]


def quantized(shape: tuple[int, ...] | None, kind: DataType, scale: float, zero: int) -> TensorInfo:
    low = kind.integer_range[0]
    return TensorInfo(shape, kind, quantization=Quantization.per_tensor(scale, low + zero))


def swish(network: Network, x: Value, kind: DataType) -> Value:
    gate = network.add(SIGMOID, x, output=quantized(None, kind, 1 / 256, 0))
    return network.add(MUL, x, gate, output=quantized(None, kind, 0.021, 13))


def hard_swish(network: Network, x: Value, kind: DataType) -> Value:
    three = quantized((1,), kind, 0.02, 100)
    number = network.constant(
        np.array([kind.integer_range[1]], kind.dtype),
        data_type=kind,
        quantization=three.quantization,
    )
    moved = network.add(ADD, x, number, output=quantized(None, kind, 0.045, 70))
    bounded = network.add(RELU6, moved, output=quantized(None, kind, 6 / 255, 0))
    scaled = network.add(MUL, number, bounded, output=quantized(None, kind, 0.09, 30))
    return network.add(MUL, scaled, x, output=quantized(None, kind, 0.31, 130))


def requantized_difference(network: Network, x: Value, kind: DataType) -> Value:
    other = network.add(ops.Quantize(), x, output=quantized(None, kind, 0.04, 99))
    powers = network.add(EXP, other, output=quantized(None, kind, 0.5, 3))
    return network.add(SUB, powers, other, output=quantized(None, kind, 0.37, 140))


def network_of(build: Build, kind: DataType) -> tuple[Network, Value]:
    network = Network()
    result = build(network, network.input("x", quantized((3, 256), kind, 0.03, 127)), kind)
    network.output("y", result)
    return network, result


def kernels_of(network: Network) -> list[str]:
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    return [info.kernel.split("_")[0] for info in program.infos if info.part != "flip"]


def check(network: Network, kind: DataType) -> None:
    every = np.arange(256, dtype=np.uint8).view(kind.dtype)
    feeds = {"x": np.ascontiguousarray(np.broadcast_to(every, (3, 256)))}
    feeds["other"] = np.random.default_rng(1).permuted(feeds["x"], axis=1)
    feeds = {value.name: feeds[value.name] for value in network.build().inputs}
    expected = run_reference(network, feeds)
    for isa in isas_of_this_test():
        check_against_reference(network, feeds, isa, expected, EXACT)


@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
@pytest.mark.parametrize("build", [swish, hard_swish, requantized_difference])
def test_functions_of_one_byte_are_one_table(build: Build, kind: DataType) -> None:
    network, _ = network_of(build, kind)
    assert kernels_of(network) == ["lookup"]
    check(network, kind)


def test_what_others_read_is_computed_for_them_as_well() -> None:
    network = Network()
    x = network.input("x", quantized((3, 256), S8, 0.03, 127))
    gate = network.add(SIGMOID, x, output=quantized(None, S8, 1 / 256, 0))
    product = network.add(MUL, x, gate, output=quantized(None, S8, 0.021, 13))
    network.output("gate", gate)
    network.output("y", product)
    network.output("z", swish(network, product, S8))
    assert kernels_of(network) == ["lookup"] * 3
    check(network, S8)


def test_functions_of_two_tensors_are_no_table() -> None:
    network = Network()
    info = quantized((3, 256), S8, 0.03, 127)
    x, other = network.input("x", info), network.input("other", info)
    gate = network.add(SIGMOID, other, output=quantized(None, S8, 1 / 256, 0))
    network.output("y", network.add(MUL, x, gate, output=quantized(None, S8, 0.021, 13)))
    assert "elementwise" in kernels_of(network)
    check(network, S8)
