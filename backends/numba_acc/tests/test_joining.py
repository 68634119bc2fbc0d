from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.programs.symbolic_programs import ORDINARY_PLANS
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


@pytest.mark.slow
def test_parts_of_any_length_are_requantised_by_one_program() -> None:
    network = Network()
    infos = [
        TensorInfo((None, 4), DataType.QASYMM_S8, Quantization.per_tensor(scale, 3))
        for scale in (0.5, 0.25)
    ]
    x, z = (network.input(name, info) for name, info in zip("xz", infos, strict=True))
    for axis in (0, 1):
        network.output(
            f"y{axis}", network.add(ops.Concat(axis), x, z, output=infos[0].with_shape(None))
        )
    graph, random = network.build(), np.random.default_rng(4)
    options = RuntimeOptions(backends=["NumbaAcc", "CpuRef"], on_fallback="error")
    cpu_ref = Runtime(RuntimeOptions(backends=["CpuRef"]))
    with Model(graph, Runtime(options)) as model, Model(graph, cpu_ref) as expected:
        for rows in range(3, 3 + ORDINARY_PLANS + 4):
            given = {name: random.integers(-128, 128, (rows, 4), np.int8) for name in "xz"}
            made, wanted = model.run(given), expected.run(given)
            for name in wanted:
                np.testing.assert_array_equal(made[name], wanted[name])
        symbolic = model.runtime.get_network(model.network_id).plan_cache.symbolic
        assert not symbolic.has_failed
