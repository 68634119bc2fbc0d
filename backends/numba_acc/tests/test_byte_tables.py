"""Layers that together are a function of one byte: a table, with CpuRef's bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import Value
from armpy.ops.tolerance import EXACT

from .one_layer import quantized_bytes
from .support import (
    check_against_reference,
    isas_of_this_test,
    program_of,
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


def swish(network: Network, x: Value, kind: DataType) -> Value:
    gate = network.add(SIGMOID, x, output=quantized_bytes(None, kind, 1 / 256, 0))
    return network.add(MUL, x, gate, output=quantized_bytes(None, kind, 0.021, 13))


def hard_swish(network: Network, x: Value, kind: DataType) -> Value:
    three = quantized_bytes((1,), kind, 0.02, 100)
    number = network.constant(
        np.array([kind.integer_range[1]], kind.dtype),
        data_type=kind,
        quantization=three.quantization,
    )
    moved = network.add(ADD, x, number, output=quantized_bytes(None, kind, 0.045, 70))
    bounded = network.add(RELU6, moved, output=quantized_bytes(None, kind, 6 / 255, 0))
    scaled = network.add(MUL, number, bounded, output=quantized_bytes(None, kind, 0.09, 30))
    return network.add(MUL, scaled, x, output=quantized_bytes(None, kind, 0.31, 130))


def requantized_difference(network: Network, x: Value, kind: DataType) -> Value:
    other = network.add(ops.Quantize(), x, output=quantized_bytes(None, kind, 0.04, 99))
    powers = network.add(EXP, other, output=quantized_bytes(None, kind, 0.5, 3))
    return network.add(SUB, powers, other, output=quantized_bytes(None, kind, 0.37, 140))


def real_numbers(network: Network, x: Value, kind: DataType) -> Value:
    """x sigmoid(x), exponentials and a clamp of real numbers, which are quantised once."""
    real = network.add(ops.Dequantize(), x, output=TensorInfo(None, DataType.FLOAT32))
    gated = network.add(MUL, real, network.add(SIGMOID, real))
    half = network.constant(np.full((1, 1), 0.5, np.float32))
    moved = network.add(SUB, network.add(EXP, network.add(MUL, real, half)), gated)
    to_even = ops.Quantize(rounds_to_even=True)
    return network.add(
        to_even, network.add(RELU6, moved), output=quantized_bytes(None, kind, 0.017, 9)
    )


def network_of(build: Build, kind: DataType) -> tuple[Network, Value]:
    network = Network()
    result = build(network, network.input("x", quantized_bytes((3, 256), kind, 0.03, 127)), kind)
    network.output("y", result)
    return network, result


def commands_of(network: Network) -> list[str]:
    program = program_of(network)
    return [info.kernel for info in program.infos if info.part != "flip"]


def kernels_of(network: Network) -> list[str]:
    return [command.split("_")[0] for command in commands_of(network)]


def check(network: Network, kind: DataType) -> None:
    every = np.arange(256, dtype=np.uint8).view(kind.dtype)
    feeds = {"x": np.ascontiguousarray(np.broadcast_to(every, (3, 256)))}
    feeds["other"] = np.random.default_rng(1).permuted(feeds["x"], axis=1)
    feeds = {value.name: feeds[value.name] for value in network.build().inputs}
    expected = run_reference(network, feeds)
    for isa in isas_of_this_test():
        check_against_reference(network, feeds, isa, expected, EXACT)


@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
@pytest.mark.parametrize("build", [swish, hard_swish, requantized_difference, real_numbers])
def test_functions_of_one_byte_are_one_table(build: Build, kind: DataType) -> None:
    network, _ = network_of(build, kind)
    assert kernels_of(network) == ["lookup"]
    check(network, kind)


def test_what_others_read_is_computed_for_them_as_well() -> None:
    network = Network()
    x = network.input("x", quantized_bytes((3, 256), S8, 0.03, 127))
    gate = network.add(SIGMOID, x, output=quantized_bytes(None, S8, 1 / 256, 0))
    product = network.add(MUL, x, gate, output=quantized_bytes(None, S8, 0.021, 13))
    network.output("gate", gate)
    network.output("y", product)
    network.output("z", swish(network, product, S8))
    assert kernels_of(network) == ["lookup"] * 3
    check(network, S8)


def test_functions_begin_where_others_read() -> None:
    network, to_even = Network(), ops.Quantize(rounds_to_even=True)
    value = network.input("x", quantized_bytes((3, 256), U8, 0.03, 127))
    for number in range(9):
        real = network.add(ops.Dequantize(), value, output=TensorInfo(None, DataType.FLOAT32))
        if number % 2:
            network.output(f"real {number}", real)
        info = quantized_bytes(None, U8, 0.02 + 0.001 * number, 90)
        value = network.add(to_even, network.add(RELU6, real), output=info)
    network.output("y", value)
    assert kernels_of(network).count("lookup") == 5
    check(network, U8)


def test_real_numbers_that_several_results_need_are_computed_with_each() -> None:
    network, to_even = Network(), ops.Quantize(rounds_to_even=True)
    x = network.input("x", quantized_bytes((3, 256), U8, 0.03, 127))
    real = network.add(ops.Dequantize(), x, output=TensorInfo(None, DataType.FLOAT32))
    gate = network.add(SIGMOID, real)
    for name, scale in (("y", 1 / 256), ("z", 1 / 128)):
        network.output(name, network.add(to_even, gate, output=quantized_bytes(None, U8, scale, 0)))
    assert kernels_of(network) == ["lookup"] * 2
    check(network, U8)


def test_functions_of_two_tensors_are_no_table() -> None:
    network = Network()
    info = quantized_bytes((3, 256), S8, 0.03, 127)
    x, other = network.input("x", info), network.input("other", info)
    gate = network.add(SIGMOID, other, output=quantized_bytes(None, S8, 1 / 256, 0))
    network.output("y", network.add(MUL, x, gate, output=quantized_bytes(None, S8, 0.021, 13)))
    assert "elementwise" in kernels_of(network)
    check(network, S8)


@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
@pytest.mark.parametrize("operation", [ADD, MUL])
def test_real_functions_of_two_tensors_are_one_loop(
    operation: ops.ElementwiseBinary, kind: DataType
) -> None:
    network = Network()
    scales = {"x": 0.25, "other": 0.5}
    inputs = [network.input(n, quantized_bytes((3, 256), kind, s, 90)) for n, s in scales.items()]
    floats = TensorInfo(None, DataType.FLOAT32)
    first, second = (network.add(ops.Dequantize(), value, output=floats) for value in inputs)
    both, to_even = network.add(operation, first, second), ops.Quantize(rounds_to_even=True)
    network.output("y", network.add(to_even, both, output=quantized_bytes(None, kind, 1.0, 101)))
    assert kernels_of(network) == ["elementwise"]
    check(network, kind)


def test_floats_that_others_read_are_converted_from_bytes_again() -> None:
    network = Network()
    x = network.input("x", quantized_bytes((3, 256), U8, 0.25, 90))
    other = network.input("other", quantized_bytes((3, 256), U8, 0.5, 90))
    floats, to_even = TensorInfo(None, DataType.FLOAT32), ops.Quantize(rounds_to_even=True)
    real, second = (network.add(ops.Dequantize(), value, output=floats) for value in (x, other))
    product = network.add(MUL, real, second)
    network.output("y", network.add(to_even, product, output=quantized_bytes(None, U8, 1.0, 101)))
    network.output("z", network.add(ops.Reduce(ops.ReduceOperation.MAX, (0,)), real))
    assert sum("_u8xu8xu8_" in command for command in commands_of(network)) == 1
    check(network, U8)
