"""Programs whose arrays are known beforehand: the same as any other execution."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Model, Network
from armpy.errors import ExecutionTimeoutError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.ops import Gather
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.models.control_flow import loop

from .networks import convolutions, image, runtime_of, small


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("network", [small(), convolutions()], ids=["small", "convolutions"])
def test_a_bound_program_gives_what_a_call_gives(num_threads: int, network: Network) -> None:
    with runtime_of(num_threads) as runtime:
        model = Model(network, runtime)
        (spec,) = model.inputs
        chance = np.random.default_rng(0)
        x = np.zeros(spec.info.known_shape, np.float32)
        execution = model.bind({spec.name: x})
        for _ in range(3):
            x[...] = chance.standard_normal(x.shape)
            expected = model.run({spec.name: x})
            for name, array in execution().items():
                np.testing.assert_array_equal(array, expected[name])


def gather() -> Network:
    net = Network()
    table = net.input("table", TensorInfo((4,), DataType.FLOAT32))
    net.output("y", net.add(Gather(), table, net.input("i", TensorInfo((1,), DataType.SIGNED32))))
    return net


def test_an_index_out_of_range_is_an_error_and_the_next_call_is_right() -> None:
    model = Model(gather(), Runtime(RuntimeOptions(backends=["NumbaAcc"])))
    table, index = np.arange(4, dtype=np.float32), np.array([7], np.int32)
    execution = model.bind({"table": table, "i": index})
    with pytest.raises(InvalidArgumentError, match=r"out of range.*0 to 3; got 7"):
        execution()
    index[0] = 2
    assert execution()["y"].tolist() == [2]


def test_loops_keep_their_time() -> None:
    runtime = Runtime(RuntimeOptions(backends=["NumbaAcc"], loop_timeout_s=0.05))
    model = Model(loop(2_000_000_000), runtime)
    (spec,) = model.inputs
    start = np.zeros(spec.info.known_shape, spec.data_type.dtype)
    execution = model.bind({spec.name: start})
    with pytest.raises(ExecutionTimeoutError, match=r"within 0\.05 s"):
        execution()
    start[...] = 1_999_999_999
    (end,) = execution().values()
    assert end.reshape(-1).tolist() == [2_000_000_000]


@pytest.mark.slow
def test_a_profile_holds_the_commands_of_bound_executions() -> None:
    runtime = Runtime(RuntimeOptions(backends=["NumbaAcc"], profiling=True))
    model = Model(convolutions(), runtime)
    execution = model.bind(image())
    profiler = runtime.get_profiler(model.network_id)
    assert profiler is not None
    model.run(image())
    called = {event.name for event in profiler.events}
    profiler.clear()
    execution()
    assert {event.name for event in profiler.events} == called
