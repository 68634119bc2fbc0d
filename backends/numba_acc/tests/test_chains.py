"""Chains of elementwise layers: one command each, and the same as CpuRef."""

from collections.abc import Callable

import numpy as np
import pytest
from armpy_numba_acc.kernels import elementwise
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa

from armpy import Network, ops
from armpy.graph import Value
from armpy.ops import ActivationFunction, BinaryOperation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    ISAS,
    check_against_reference,
    isas_of_this_test,
    program_of,
    run_compiled,
    run_reference,
)

F32 = DataType.FLOAT32

Build = Callable[[Network, Value], Value]


def binary(network: Network, name: str, lhs: Value, rhs: Value) -> Value:
    return network.add(ops.ElementwiseBinary(BinaryOperation[name]), lhs, rhs)


def number(network: Network, value: float, shape: tuple[int, ...] = ()) -> Value:
    return network.constant(np.full(shape, value, np.float32))


def swish(network: Network, x: Value) -> Value:
    return binary(network, "MUL", x, network.add(ops.Activation(ActivationFunction.SIGMOID), x))


def hard_swish(network: Network, x: Value) -> Value:
    """As Keras writes it."""
    shifted = binary(network, "ADD", x, number(network, 3.0))
    bounded = network.add(ops.Activation(ActivationFunction.BOUNDED_RELU, 6.0, 0.0), shifted)
    return binary(network, "MUL", binary(network, "MUL", bounded, number(network, 1 / 6)), x)


def normalization(network: Network, x: Value) -> Value:
    mean = network.constant(np.linspace(-1, 1, 19).astype(np.float32))
    scale = network.constant(np.linspace(0.5, 2, 19).astype(np.float32).reshape(1, 1, 19))
    centred = binary(
        network, "SUB", number(network, 1.0, (1, 1, 1, 1)), binary(network, "SUB", x, mean)
    )
    product = ops.ElementwiseBinary(BinaryOperation.MUL, ops.FusedActivation.RELU6)
    return network.add(product, centred, scale)


def gate(network: Network, x: Value) -> Value:
    """The gate has fewer elements than what it is multiplied with: two commands."""
    numbers = network.constant(np.linspace(-1, 1, 19).astype(np.float32))
    opening = network.add(ops.Activation(ActivationFunction.SIGMOID), numbers)
    return binary(network, "MUL", x, opening)


def read_twice(network: Network, x: Value) -> Value:
    """What lies between is an output as well."""
    middle = binary(network, "ADD", x, x)
    network.output("middle", middle)
    return binary(network, "MUL", middle, x)


def doubled(network: Network, x: Value) -> Value:
    for _ in range(6):
        x = binary(network, "ADD", x, x)
    return x


CASES = [(swish, 1), (hard_swish, 1), (normalization, 1), (gate, 2), (read_twice, 2), (doubled, 2)]


def network_of(build: Build, shape: tuple[int, ...] = (2, 3, 5, 19)) -> Network:
    network = Network()
    network.output("y", build(network, network.input("x", TensorInfo(shape, F32))))
    return network


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("build", "num_commands"), CASES, ids=lambda c: getattr(c, "__name__", c))
def test_chains_are_one_command_and_equal_the_reference(build: Build, num_commands: int) -> None:
    network = network_of(build)
    program = program_of(network)
    assert program.num_commands == num_commands
    feeds = {"x": np.random.default_rng(1).normal(size=(2, 3, 5, 19)).astype(np.float32) * 3}
    expected = run_reference(network, feeds)
    for isa in isas_of_this_test():
        check_against_reference(network, feeds, isa, expected)


def halves(network: Network) -> None:
    """Sums and products of float16, each rounded to it."""
    x, w = (network.input(name, TensorInfo((3, 333), DataType.FLOAT16)) for name in "xw")
    half = network.constant(np.full((1,), 0.7, np.float16))
    value = binary(network, "MUL", binary(network, "ADD", x, w), x)
    value = binary(network, "SUB", binary(network, "MUL", value, half), w)
    network.output("y", network.add(ops.Activation(ActivationFunction.ABS), value))


@pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])
def test_a_chain_of_float16_is_one_command_and_rounds_after_each_layer(isa: Isa) -> None:
    network = Network()
    halves(network)
    program = program_of(network, isa)
    assert len(program.infos) == 1
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 16, (2, 3, 333)).astype(np.uint16)
    bits[:, 0] &= 0x83FF  # subnormal
    x, w = bits.view(np.float16)
    with np.errstate(all="ignore"):
        expected = run_reference(network, {"x": x, "w": w})["y"]
    actual = run_compiled(network, {"x": x, "w": w}, isa)["y"]
    is_nan = np.isnan(expected)
    assert not is_nan.all()
    np.testing.assert_array_equal(np.isnan(actual), is_nan)
    np.testing.assert_array_equal(
        actual[~is_nan].view(np.uint16), expected[~is_nan].view(np.uint16)
    )


@pytest.mark.parametrize("isa", ISAS[:2], ids=[isa.name for isa in ISAS[:2]])
def test_sums_become_floats_and_bytes_in_a_command_each(isa: Isa) -> None:
    """What stands around the products of networks that are quantised as they run."""
    network, sums = Network(), np.array([[-(2**31), 5, 300], [7, -9, 2**31 - 1]], np.int32)
    integers = network.input("sums", TensorInfo((2, 3), DataType.SIGNED32))
    point = network.constant(np.array([2, -1, 3], np.int32))
    scale = network.input("scale", TensorInfo((1,), F32))
    real = network.add(
        ops.Cast(), binary(network, "SUB", integers, point), output=TensorInfo(None, F32)
    )
    network.output("real", binary(network, "MUL", real, scale))
    steps = network.add(
        ops.ElementwiseUnary(ops.UnaryOperation.ROUND),
        binary(network, "DIV", network.input("x", TensorInfo((2, 3), F32)), scale),
    )
    stored = TensorInfo(None, DataType.UNSIGNED8)
    network.output("stored", network.add(ops.Cast(), steps, output=stored))
    program = program_of(network, isa)
    assert program.num_commands == 2
    x = np.array([[-3, 0.25, 0.75], [127.4, 127.8, np.nan]], np.float32)
    feeds = {"sums": sums, "scale": np.array([0.5], np.float32), "x": x}
    # Differences wrap; halves go to even, and what is not a number to 255.
    real_sums = np.array([[2**31 - 2, 6, 297], [5, -8, 2**31 - 4]], np.float32) * np.float32(0.5)
    expected = {"real": real_sums, "stored": np.array([[0, 0, 2], [255, 255, 255]], np.uint8)}
    check_against_reference(network, feeds, isa, expected)


@pytest.mark.slow
def test_processors_with_float16_add_and_multiply_it_as_it_is() -> None:
    features = frozenset({"avx512fp16"})
    isa = make_isa("avx512vnni", "x86_64-unknown-linux-gnu", "sapphirerapids", features)
    expression = "x0.half_to_float.x1.half_to_float.add.float_to_half"
    function = elementwise.make(isa, expression, "u16xu16xu16", "vv")
    text = compile_assembly(function, "function", isa)
    assert "vaddph" in text
    assert "vcvtph2ps" not in text
