from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, TensorInfo, ops
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model

NEGATE = ops.ElementwiseUnary(ops.UnaryOperation.NEG)


@pytest.mark.slow
def test_tensors_may_lie_in_each_other_however_deep() -> None:
    network = Network()
    x = network.input("x", TensorInfo((1,), DataType.FLOAT32))
    value = network.add(NEGATE, x)
    for _ in range(1200):
        value = network.add(ops.Concat(0), value, network.add(NEGATE, x))
    network.output("y", value)
    runtime = Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"], on_fallback="error"))
    with Model(network.build(), runtime) as model:
        np.testing.assert_array_equal(model(np.ones(1, np.float32)), np.full(1201, -1, np.float32))
