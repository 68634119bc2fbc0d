"""Pooling agrees with CpuRef on every instruction set."""

from __future__ import annotations

import pytest

from armpy import Network, ops
from armpy.ops.shapes import PaddingSpec
from armpy.ops.tolerance import EXACT, Tolerance
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    check_against_reference,
    isas_of_this_test,
    random_array,
    run_reference,
)

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
MAX, AVERAGE = ops.PoolingAlgorithm.MAX, ops.PoolingAlgorithm.AVERAGE

Shape = tuple[int, int, int, int]
Pair = tuple[int, int]

CASES: dict[str, tuple[Shape, Pair, Pair, PaddingSpec]] = {
    "with borders": ((2, 7, 6, 67), (3, 3), (2, 2), SAME),
    "stride 1": ((1, 5, 9, 80), (3, 2), (1, 1), SAME),
    "explicit padding": ((1, 5, 6, 67), (3, 4), (2, 1), ((2, 0), (1, 3))),
    "stride beyond the window": ((1, 9, 9, 80), (2, 1), (3, 4), VALID),
    "whole image": ((1, 7, 7, 130), (7, 7), (7, 7), VALID),
    "more than 257 elements": ((1, 18, 20, 67), (18, 19), (1, 1), VALID),
    "few channels": ((1, 6, 7, 3), (2, 3), (2, 2), SAME),
}
"""Few kinds of kernels, as making them takes long."""


def check_everywhere(
    operation: ops.Pooling2d, source: TensorInfo, tolerance: Tolerance | None = None
) -> None:
    """Check a layer on every instruction set of this processor."""
    network = Network()
    network.output("y", network.add(operation, network.input("x", source)))
    inputs = {"x": random_array(source, 5)}
    expected = run_reference(network, inputs)
    for isa in isas_of_this_test():
        check_against_reference(network, inputs, isa, expected, tolerance)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("algorithm", ops.PoolingAlgorithm)
@pytest.mark.parametrize("name", CASES)
def test_float32(name: str, algorithm: ops.PoolingAlgorithm) -> None:
    shape, size, stride, padding = CASES[name]
    activation = ops.FusedActivation.RELU1 if size == (3, 3) else ops.FusedActivation.NONE
    operation = ops.Pooling2d(algorithm, size, stride, padding, activation)
    check_everywhere(operation, TensorInfo(shape, DataType.FLOAT32))


@pytest.mark.sampled(17)
@pytest.mark.parametrize("algorithm", [MAX, AVERAGE])
@pytest.mark.parametrize("data_type", [DataType.QASYMM_U8, DataType.QASYMM_S8])
@pytest.mark.parametrize("name", CASES)
def test_bytes(name: str, data_type: DataType, algorithm: ops.PoolingAlgorithm) -> None:
    shape, size, stride, padding = CASES[name]
    activation = ops.FusedActivation.RELU6 if size == (3, 3) else ops.FusedActivation.NONE
    operation = ops.Pooling2d(algorithm, size, stride, padding, activation)
    scale = Quantization.per_tensor(0.05, 13)
    check_everywhere(operation, TensorInfo(shape, data_type, quantization=scale))


@pytest.mark.slow
@pytest.mark.parametrize("data_type", [DataType.QASYMM_U8, DataType.QASYMM_S8])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (1, 11)], ids=str)
def test_means_of_few_bytes_are_exact(size: Pair, data_type: DataType) -> None:
    operation = ops.Pooling2d(AVERAGE, size, (1, 1), SAME)
    quantization = Quantization.per_tensor(0.05, 13)
    info = TensorInfo((1, 40, 41, 64), data_type, quantization=quantization)
    check_everywhere(operation, info, EXACT)


@pytest.mark.sampled(31)
@pytest.mark.parametrize("algorithm", [MAX, AVERAGE])
@pytest.mark.parametrize("name", CASES)
def test_words(name: str, algorithm: ops.PoolingAlgorithm) -> None:
    shape, size, stride, padding = CASES[name]
    activation = ops.FusedActivation.RELU6 if size == (3, 3) else ops.FusedActivation.NONE
    operation = ops.Pooling2d(algorithm, size, stride, padding, activation)
    scale = Quantization.per_tensor(0.0005, 0)
    check_everywhere(operation, TensorInfo(shape, DataType.QSYMM_S16, quantization=scale))
