from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy_testing.preparations import ORDINARY_PROGRAMS

from .support import ISAS, check_against_reference, program_of

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


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_read_again", [False, True])
def test_a_concatenated_tensor_is_written_to_where_it_is(axis: int, is_read_again: bool) -> None:
    network = Network()
    past, x = (network.input(name, TensorInfo((3, 3), DataType.FLOAT32)) for name in ("past", "x"))
    new = network.add(NEGATE, x)
    whole = network.add(ops.Concat(axis), past, new)
    places = np.array([[4, 3, 1]] * 3)  # over what is written there from the same tensor
    indices = network.constant(places if axis else places.T)
    network.output("y", network.add(ops.ScatterElements(axis), whole, indices, new))
    if is_read_again:
        network.output("z", network.add(NEGATE, whole))
    random = np.random.default_rng(0)
    given = {name: random.normal(size=(3, 3)).astype(np.float32) for name in ("past", "x")}
    check_against_reference(network, given, ISAS[0])
    program = program_of(network)
    assert ("copy" in {kernel.name for kernel in program.kernels}) == (is_read_again or not axis)


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
        for rows in range(3, 3 + ORDINARY_PROGRAMS + 4):
            given = {name: random.integers(-128, 128, (rows, 4), np.int8) for name in "xz"}
            made, wanted = model.run(given), expected.run(given)
            for name in wanted:
                np.testing.assert_array_equal(made[name], wanted[name])
        traces = model.runtime.get_network(model.network_id).program_cache.traces
        assert not traces.has_failed
