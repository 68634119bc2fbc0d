"""Matrix products of traced sizes, and a refusal."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

import armpy
from armpy import DataType, Network, Quantization, TensorInfo, ops

from .support import ISA_NAMES

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("transpose_x", "transpose_y"), [(False, False), (True, True)])
def test_matrices_of_traced_sizes_are_multiplied_as_those_of_known_ones(
    transpose_x: bool, transpose_y: bool, isa: str
) -> None:
    network, random = Network(), np.random.default_rng(6)
    x = network.input("x", TensorInfo((None, 3, None, None), DataType.FLOAT32))
    y = network.input("y", TensorInfo((None, 3, None, None), DataType.FLOAT32))
    operation = ops.BatchMatMul(transpose_x=transpose_x, transpose_y=transpose_y)
    network.output("z", network.add(operation, x, y))
    options = {"NumbaAcc": {"isa": isa, "num_threads": 2}}
    runtime = armpy.Runtime(armpy.RuntimeOptions(["NumbaAcc"], backend_options=options))
    model = armpy.Model(network, runtime)
    for batch, rows, depth, columns in ((2, 5, 7, 9), (3, 8, 40, 3), (2, 21, 6, 77), (5, 4, 9, 65)):
        one = random.normal(size=(batch, 3, rows, depth)).astype(np.float32)
        other = random.normal(size=(batch, 3, depth, columns)).astype(np.float32)
        given = (
            one.swapaxes(-1, -2) if transpose_x else one,
            other.swapaxes(-1, -2) if transpose_y else other,
        )
        np.testing.assert_allclose(model(*given), one @ other, rtol=1e-4, atol=1e-4)


def test_matrices_of_bytes_that_are_too_deep_are_refused() -> None:
    quantization = Quantization.per_tensor(0.1, 0)
    x, y, z = (
        TensorInfo(shape, DataType.QASYMM_S8, quantization)
        for shape in ((1, 40000), (40000, 2), (1, 2))
    )
    answer = support(ops.BatchMatMul(), [x, y], [z])
    assert not answer
    assert "sums of 40000 products" in str(answer)
