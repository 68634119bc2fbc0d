"""Tensors without elements: nothing is computed for them, and nothing else is disturbed."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import Network, Quantization, Runtime, RuntimeOptions, ops
from armpy.errors import ArmpyError, ExecutionTimeoutError, InvalidArgumentError
from armpy.model import Model
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    ISAS,
    random_array,
    run_compiled,
    run_reference,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
I32 = TensorInfo((1,), DataType.SIGNED32)
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, 3))
ADD = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
SUM = ops.Reduce(ops.ReduceOperation.SUM, axes=(1,))


def network_of(operation: Operation, inputs: list[TensorInfo]) -> Network:
    """One layer."""
    network = Network()
    values = [network.input(f"x{number}", info) for number, info in enumerate(inputs)]
    is_quantized = inputs[0].data_type.is_quantized
    shapes = operation.infer_shapes(inputs)
    outputs = [S8.with_shape(shape) for shape in shapes if shape is not None]
    added = network.add_layer(operation, values, outputs=outputs if is_quantized else ()).outputs
    for number, value in enumerate(added):
        network.output(f"y{number}", value)
    return network


def arrays_of(inputs: list[TensorInfo]) -> dict[str, Array]:
    """Elements for all inputs."""
    return {f"x{n}": random_array(info, n) for n, info in enumerate(inputs)}


def test_layers_that_give_something_of_nothing_are_refused() -> None:
    operation, inputs = SUM, [F32.with_shape((3, 0))]
    refusal = support(operation, inputs, [F32.with_shape((3,))])
    assert not refusal
    assert "FLOAT32 (3, 0) has no elements" in str(refusal)
    assert run_reference(network_of(operation, inputs), arrays_of(inputs))["y0"].tolist() == [0] * 3


def test_empty_tensors_between_layers_and_beside_others() -> None:
    network = Network()
    x, none = (
        network.input("x", F32.with_shape((2, 3))),
        network.input("none", F32.with_shape((0, 3))),
    )
    doubled = network.add(ADD, none, none)
    joined = network.add(ops.Concat(axis=0), doubled, x, none)
    nothing, rest = network.add_layer(ops.Splitter(axis=0, sizes=(0, 2)), [joined]).outputs
    network.output("nothing", network.add(ops.Softmax(), nothing))
    network.output("rest", network.add(ADD, rest, rest))
    network.output("doubled", doubled)
    inputs = {"x": random_array(x.info), "none": np.empty((0, 3), np.float32)}
    for isa in ISAS:
        got = run_compiled(network, inputs, isa)
        np.testing.assert_array_equal(got["rest"], 2 * inputs["x"])
        assert (got["nothing"].shape, got["doubled"].shape) == ((0, 3), (0, 3))


def test_loops_are_run_though_they_give_nothing() -> None:
    bound = Network()
    bound.input("nothing", F32.with_shape((0,)))
    bound.output("goes_on", bound.constant(np.array(True)))
    condition, body = bound.build(), Network()
    body.output("nothing", body.add(ADD, *[body.input("nothing", F32.with_shape((0,)))] * 2))
    network = network_of(ops.While(condition, body.build()), [F32.with_shape((0,))])
    options = RuntimeOptions(backends=["NumbaAcc", "CpuRef"], loop_timeout_s=0.05)
    with Runtime(options) as runtime:
        number = runtime.load_network(network)
        with pytest.raises(ExecutionTimeoutError, match="loop_timeout_s"):
            runtime.enqueue_workload(number, {"x0": np.empty(0, np.float32)})


def test_a_network_whose_outputs_are_all_empty_runs() -> None:
    network = network_of(ops.Softmax(), [F32.with_shape((0, 5))])
    with Runtime(RuntimeOptions(backends=["NumbaAcc"])) as runtime:
        number = runtime.load_network(network)
        got = runtime.enqueue_workload(number, {"x0": np.empty((0, 5), np.float32)})
    assert got["y0"].shape == (0, 5)


def test_indices_into_nothing_are_still_out_of_range() -> None:
    inputs = [F32.with_shape((3, 0)), I32.with_shape((2,))]
    network = network_of(ops.Gather(), inputs)
    feeds = {"x0": np.empty((3, 0), np.float32), "x1": np.array([0, 3], np.int32)}
    with Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])) as runtime:
        number = runtime.load_network(network)
        with pytest.raises(InvalidArgumentError, match=r"Expected 0 to 2; got 0 to 3"):
            runtime.enqueue_workload(number, feeds)


@pytest.mark.parametrize("index", [-5, 4, 5, -6])
def test_constant_indices_are_checked_although_a_lookup_gives_nothing(index: int) -> None:
    network = Network()
    x = network.input("x", F32.with_shape((0, 5)))
    places = network.constant(np.array([0, index], np.int32))
    network.output("y", network.add(ops.Gather(axis=1, wraps_negative=True), x, places))
    runtime = Runtime(RuntimeOptions(["NumbaAcc", "CpuRef"]))
    model = Model(network, runtime)
    x_values = np.zeros((0, 5), np.float32)
    if -5 <= index < 5:
        assert model.run({"x": x_values})["y"].shape == (0, 2)
        assert "NumbaAcc 1" in str(model.placement)
    else:
        with pytest.raises(ArmpyError, match="out of range"):
            model.run({"x": x_values})
