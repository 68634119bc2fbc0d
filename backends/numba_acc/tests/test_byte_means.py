"""Means of bytes that are rounded once: sums of integers, where these give CpuRef's bytes."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, TensorInfo, ops
from armpy.ops.operation import Operation
from armpy.ops.tolerance import EXACT

from .one_layer import quantized_bytes
from .support import check_against_reference, isas_of_this_test, program_of, run_reference

S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8
FLOATS = TensorInfo(None, DataType.FLOAT32)
AVERAGE = ops.PoolingAlgorithm.AVERAGE
SHAPE = (2, 6, 5, 40)
PLAIN = ops.Pooling2d(AVERAGE, (2, 2), (2, 2))
POOLS = {
    "plain": PLAIN,
    "padded": ops.Pooling2d(AVERAGE, (3, 3), (1, 1), ((1, 1), (1, 1))),
    "mean": ops.Reduce(ops.ReduceOperation.MEAN, (1, 2), keep_dims=True),
    "sum": ops.Reduce(ops.ReduceOperation.SUM, (1, 2), keep_dims=True),
}


def network_of(
    pool: Operation, kind: DataType, scale: float, out_scale: float, factor: float = 0.0371
) -> Network:
    network = Network()
    x = network.input("x", quantized_bytes(SHAPE, kind, scale, 120))
    value = network.add(pool, network.add(ops.Dequantize(), x, output=FLOATS))
    if pool is POOLS["sum"]:
        number = network.constant(np.array(factor, np.float32))
        value = network.add(ops.Reshape((2, 40)), value)
        value = network.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), value, number)
    to_even = ops.Quantize(rounds_to_even=True)
    network.output(
        "y", network.add(to_even, value, output=quantized_bytes(None, kind, out_scale, 101))
    )
    return network


def adds_integers(network: Network) -> bool:
    program = program_of(network)
    return any(info.kernel.startswith("pooling_u8") for info in program.infos)


def check(network: Network, kind: DataType) -> None:
    stored = np.random.default_rng(7).integers(0, 256, SHAPE, np.uint8)
    stored[1] //= 16
    feeds = {"x": stored.view(kind.dtype)}
    expected = run_reference(network, feeds)
    for isa in isas_of_this_test():
        check_against_reference(network, feeds, isa, expected, EXACT)


@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", POOLS)
def test_integers_are_added_up_where_no_sum_is_near_a_tie(name: str, kind: DataType) -> None:
    network = network_of(POOLS[name], kind, 1.0 if name == "sum" else 0.0413, 0.0291)
    assert adds_integers(network)
    check(network, kind)


@pytest.mark.parametrize("kind", [S8, U8], ids=lambda kind: kind.name)
def test_floats_are_averaged_where_sums_are_ties(kind: DataType) -> None:
    network = network_of(PLAIN, kind, 0.25, 0.25)
    assert not adds_integers(network)
    check(network, kind)


@pytest.mark.parametrize("factor", [1e38, np.inf])
def test_floats_are_added_up_where_factors_overflow(factor: float) -> None:
    network = network_of(POOLS["sum"], U8, 1.0, 0.0291, factor)
    assert not adds_integers(network)
    check(network, U8)
