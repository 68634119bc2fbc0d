"""Sums and products of bytes with constants: lines and tables with CpuRef's bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from armpy_numba_acc.packing.lines import fitted_lines

from armpy import DataType, Network, ops
from armpy.ops.tolerance import EXACT

from .one_layer import quantized_bytes
from .support import (
    check_against_reference,
    isas_of_this_test,
    program_of,
    run_reference,
)

S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8
ADD, SUB, MUL = ops.BinaryOperation.ADD, ops.BinaryOperation.SUB, ops.BinaryOperation.MUL
NONE, RELU, RELU6 = ops.FusedActivation.NONE, ops.FusedActivation.RELU, ops.FusedActivation.RELU6
CHANNELS = 75

Step = tuple[ops.BinaryOperation, bool, float, float, ops.FusedActivation]
"""Operation, whether the constant comes first, its scale, the output's scale, what is after."""

STEPS: list[Step] = [
    (ADD, False, 0.0307, 0.0513, RELU),
    (ADD, True, 0.5, 1.0, NONE),
    (SUB, False, 0.013, 0.0021, NONE),
    (SUB, True, 1e-4, 0.03, RELU6),
    (MUL, False, 0.0084, 0.0304, NONE),
    (MUL, True, 0.0083, 0.0652, NONE),
    (MUL, False, 0.5, 0.5, RELU),
    (MUL, False, 0.02, 3.0, NONE),
    (MUL, True, 0.02, 0.0011, RELU6),
]


def network_of(
    steps: Sequence[Step], kind: DataType, shape: tuple[int, ...] = (CHANNELS,)
) -> Network:
    """Steps after each other, on every byte in each channel."""
    random, network = np.random.default_rng(3), Network()
    value = network.input("x", quantized_bytes((256, CHANNELS), kind, 0.0625, 127))
    for operation, is_first, scale, out_scale, activation in steps:
        info = quantized_bytes(shape, kind, scale, 40)
        stored = random.integers(*kind.integer_range, shape, kind.dtype, endpoint=True)
        constant = network.constant(stored, data_type=kind, quantization=info.quantization)
        operands = (constant, value) if is_first else (value, constant)
        layer = ops.ElementwiseBinary(operation, activation=activation)
        value = network.add(layer, *operands, output=quantized_bytes(None, kind, out_scale, 120))
    network.output("y", value)
    return network


def kernels_of(network: Network) -> list[str]:
    program = program_of(network)
    return [kernel.name for kernel in program.kernels if kernel.name != "flip"]


def check(network: Network, kind: DataType) -> None:
    every = np.arange(256, dtype=np.uint8).view(kind.dtype).reshape(256, 1)
    feeds = {"x": np.ascontiguousarray(np.broadcast_to(every, (256, CHANNELS)))}
    expected = run_reference(network, feeds)
    for isa in isas_of_this_test():
        check_against_reference(network, feeds, isa, expected, EXACT)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
@pytest.mark.parametrize("step", STEPS, ids=lambda s: f"{s[0].name}-{s[2]}-{s[3]}")
def test_every_byte_with_a_constant_for_each_channel_is_exact(step: Step, kind: DataType) -> None:
    network = network_of([step], kind)
    assert kernels_of(network) == ["byte_lines"]
    check(network, kind)


@pytest.mark.parametrize("steps", [STEPS[4:5] + STEPS[:1], STEPS[5:6] + STEPS[1:3]], ids=len)
def test_sums_and_products_after_each_other_are_one_command(steps: list[Step]) -> None:
    network = network_of(steps, S8)
    assert kernels_of(network) == ["byte_lines"]
    check(network, S8)


@pytest.mark.parametrize("steps", [STEPS[:1], STEPS[4:6]], ids=len)
def test_constants_of_one_number_become_a_table(steps: list[Step]) -> None:
    network = network_of(steps, S8, shape=(1,))
    assert kernels_of(network) == ["lookup"]
    check(network, S8)


def test_sums_whose_ties_are_rounded_either_way_need_no_line() -> None:
    network = network_of([(ADD, False, 0.03, 0.05, NONE)], S8)
    assert kernels_of(network) == ["elementwise"]
    check(network, S8)


def test_a_tensor_that_others_read_too_is_written() -> None:
    network = Network()
    info = quantized_bytes((256, CHANNELS), S8, 0.1, 128)
    constant = network.constant(
        np.arange(CHANNELS, dtype=np.int8), data_type=S8, quantization=info.quantization
    )
    layer = ops.ElementwiseBinary(ADD)
    first = network.add(layer, network.input("x", info), constant, output=info)
    network.output("y", network.add(layer, first, constant, output=info))
    network.output("z", first)
    check(network, S8)


def test_values_that_no_line_has_are_refused() -> None:
    line = np.floor(np.arange(256.0) * 0.7 + 3.25).astype(np.int64).reshape(256, 1)
    slopes = np.array([0.7])
    assert fitted_lines(line, slopes, 0, (0, 255)) is not None
    line[100] += 1
    assert fitted_lines(line, slopes, 0, (0, 255)) is None
    assert fitted_lines(line, slopes, 0, (0, 50)) is not None  # 100 is beyond the bounds
