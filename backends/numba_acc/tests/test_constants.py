"""Packed constants of a program: what is equal is there once, and nothing lies between them."""

import gc
import tracemalloc

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.program import constant_pool
from armpy_numba_acc.program.offered import offer_constants

import armpy
from armpy import Network, RuntimeOptions
from armpy.ops import FullyConnected
from armpy.ops.operation import Array
from armpy_testing.models.networks import ADD, f32

from .support import program_of, run_compiled

SLACK_BYTES = 64
"""That kernels may read after the last one."""


def matrices(*weights: Array) -> Network:
    """A vector times matrices, one after the other."""
    net = Network()
    value = net.input("x", f32(1, weights[0].shape[1]))
    for matrix in weights:
        value = net.add(FullyConnected(), value, net.constant(matrix))
    net.output("y", value)
    return net


@pytest.fixture
def weights() -> Array:
    return np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)


def test_equal_weights_of_two_layers_are_packed_once(weights: Array) -> None:
    once, twice = matrices(weights), matrices(weights, weights.copy())
    assert program_of(twice).constants.size == program_of(once).constants.size
    values = np.random.default_rng(1).normal(size=(1, 64)).astype(np.float32)
    (output,) = run_compiled(twice, {"x": values}, host_isas()[0]).values()
    np.testing.assert_allclose(output, values @ weights.T @ weights.T, rtol=1e-4, atol=1e-4)


def test_weights_of_one_size_that_differ_are_packed_each(weights: Array) -> None:
    single = program_of(matrices(weights)).constants.size - SLACK_BYTES
    three = program_of(matrices(weights, weights + 1, weights * 2)).constants.size - SLACK_BYTES
    assert three == 3 * single


def test_constants_go_as_they_are_packed() -> None:
    weights = np.random.default_rng(0).normal(size=(6, 512, 512)).astype(np.float32)
    with armpy.Runtime(RuntimeOptions(backends=["NumbaAcc"], num_threads=1)) as runtime:
        armpy.Model(matrices(*weights), runtime).close()  # compiles
        network = matrices(*(weights + 1))
        tracemalloc.start()
        try:
            armpy.Model(network, runtime).close()
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_bytes < 2.7 * weights.nbytes


def test_a_program_may_have_no_constants() -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.output("y", net.add(ADD, x, x))
    assert program_of(net).constants.size == 0


def test_what_another_program_has_outlives_it() -> None:
    data = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)
    slack = np.zeros(SLACK_BYTES // 4, np.float32)
    constants = np.concatenate([np.zeros(64, np.float32), data.reshape(-1), slack]).view(np.uint8)
    offer_constants(constants)
    shared = constant_pool.share_bytes(data)
    assert np.shares_memory(shared, constants)
    del constants
    gc.collect()
    np.testing.assert_array_equal(shared.view(np.float32).reshape(64, 64), data)
    assert not np.shares_memory(constant_pool.share_bytes(data + 1), shared)


def test_constants_without_bytes_after_them_are_not_shared() -> None:
    constants = np.random.default_rng(6).normal(size=64 * 64).astype(np.float32).view(np.uint8)
    offer_constants(constants)  # kernels would read beyond its end
    assert not np.shares_memory(constant_pool.share_bytes(constants), constants)
