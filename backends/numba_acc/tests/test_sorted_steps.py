"""Products of bytes that 16 bits add up: exact whatever the weights and elements are."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.sorted_steps import sorted_lines

from armpy import Network, ops
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import PRODUCT_ISAS, check_against_reference, program_of, run_compiled
from .test_weighted_u8 import (
    SYMM,
    Case,
    convolution,
)

ISAS = [isa for isa in PRODUCT_ISAS if isa.has_saturating_bytes]

PAIRS = ((127, 127), (-127, -127), (127, -127), (-128, -128), (64, 64), (-64, -64), (64, 63))
"""Neighbouring weights of which some sums need more than 16 bits."""

COLUMNS, DEPTH = 7 * 16, 512


def hostile_weights() -> Array:
    """Small weights (columns, depth) with each of `PAIRS` at every place of a step."""
    weights = np.random.default_rng(0).integers(-9, 10, (COLUMNS, DEPTH))
    for column in range(COLUMNS):
        place = 4 * (column % 120) + column // 7 % 4
        weights[column, place : place + 2] = PAIRS[column % 7]
    return weights


def product(weights: Array, sign: int) -> tuple[Network, dict[str, Array]]:
    """A network whose pixel `n` has the largest elements where column `n` has weights of a sign.

    That column's result is 128, in units of the sums, as its bias is the sum's opposite.
    """
    pixels = np.where(sign * weights > 0, 255, 0).astype(np.uint8)
    bias = -255 * np.where(sign * weights > 0, weights, 0).sum(axis=1)
    unit = Quantization.per_tensor(1.0)
    net = Network()
    info = TensorInfo((1, 1, *pixels.shape), DataType.QASYMM_U8, unit)
    filters = net.constant(
        weights.astype(np.int8)[:, None, None], data_type=SYMM, quantization=unit
    )
    output = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(1.0, 128))
    operands = net.input("x", info), filters, net.constant(bias.astype(np.int32))
    net.output("y", net.add(ops.Convolution2d(), *operands, output=output))
    return net, {"x": pixels[None, None]}


def kernels_of(net: Network, isa: Isa) -> set[str]:
    """Names of the kernels that a network is compiled to."""
    program = program_of(net, isa)
    return {kernel.name for kernel in program.kernels}


@pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_the_largest_elements_are_exact(isa: Isa, sign: int) -> None:
    weights = hostile_weights()
    net, inputs = product(weights, sign)
    assert "convolution_u8_sorted" in kernels_of(net, isa)
    actual = run_compiled(net, inputs, isa)["y"]
    np.testing.assert_array_equal(np.diagonal(actual[0, 0]), 128)
    check_against_reference(net, inputs, isa)


@pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])
def test_every_step_is_in_one_group(isa: Isa) -> None:
    lines = sorted_lines(isa, hostile_weights()[:, None], 16, (0,))
    assert lines is not None
    numbers = np.ascontiguousarray(lines[:, : 4 * (3 + DEPTH // 4)]).view(np.int32)
    assert numbers[:, :3].all(), "a panel lacks pairs, single steps or wide ones"
    np.testing.assert_array_equal(numbers[:, :3] @ [2, 1, 1], DEPTH // 4)
    np.testing.assert_array_equal(
        np.sort(numbers[:, 3:]), np.broadcast_to(np.arange(0, DEPTH, 4), (7, DEPTH // 4))
    )


@pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])
def test_large_weights_are_multiplied_as_before(isa: Isa) -> None:
    net, _ = convolution(Case((1, 4, 4, 64), 32))
    assert "convolution_u8" in kernels_of(net, isa)
