"""Callbacks are told every value that an execution computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend

from armpy import DebugValue, Model, Network, ops
from armpy.backend import IBackendInternal
from armpy.errors import InvalidArgumentError, MemoryLimitError
from armpy.graph import Graph
from armpy.ops.operation import Array
from tests.support.control_flow import loop
from tests.support.fake_backends import CompilingBackend, runtime_of
from tests.support.networks import ADD, MUL, RELU, chain, diamond, f32, floats, ints

BACKENDS = pytest.mark.parametrize(
    "backends", [(), (CompilingBackend(),), (NumbaBackend(),)], ids=["CpuRef", "compiled", "Numba"]
)
X = floats(-1, 0, 1, 2)


def told(
    graph: Graph | Network,
    inputs: dict[str, Array],
    backends: Sequence[IBackendInternal] = (),
    **options: object,
) -> tuple[list[DebugValue], dict[str, Array]]:
    """What a callback was told, and the outputs."""
    found: list[DebugValue] = []
    with runtime_of(*backends, **options) as runtime:
        outputs = Model(graph, runtime).run(inputs, debug=found.append)
    return found, outputs


@BACKENDS
def test_every_layer_is_told_in_order_with_its_values(
    backends: Sequence[IBackendInternal],
) -> None:
    found, outputs = told(diamond(), {"x": X}, backends)
    assert [(one.layer, one.operation, one.index) for one in found] == [
        ("top", "Activation", 0),
        ("left", "ElementwiseBinary", 0),
        ("right", "ElementwiseBinary", 0),
        ("bottom", "ElementwiseBinary", 0),
    ]
    # x clamped; +1; *3; their sum.
    expected = [[0, 0, 1, 2], [1, 1, 2, 3], [0, 0, 3, 6], [1, 1, 5, 9]]
    for one, values in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.values, floats(*values))
        assert one.info.shape == one.values.shape
    np.testing.assert_array_equal(outputs["y"], floats(1, 1, 5, 9))


def test_values_are_copies_that_cannot_be_written_to() -> None:
    found, outputs = told(chain(1), {"x": X})
    assert not np.shares_memory(found[0].values, outputs["y"])
    with pytest.raises(ValueError, match="read-only"):
        found[0].values[0] = 3


def test_each_output_of_a_layer_is_told() -> None:
    net = Network()
    parts = net.add_layer(ops.Splitter(axis=0, num_splits=2), [net.input("x", f32(4))], name="cut")
    net.output("y", parts.outputs[0])
    net.output("z", net.add(RELU, parts.outputs[1]))
    found, _ = told(net, {"x": X})
    assert [(one.layer, one.index, one.values.tolist()) for one in found[:2]] == [
        ("cut", 0, [-1, 0]),
        ("cut", 1, [1, 2]),
    ]


def test_shapes_that_depend_on_values_are_told_as_they_turn_out() -> None:
    net = Network()
    x = net.input("x", f32(None))
    flat = net.add(ops.Reshape(), x, net.add(ops.Shape(), x), name="same")
    net.output("y", net.add(RELU, flat, name="clamped"))
    found, _ = told(net, {"x": floats(-1, 5)})
    assert found[-1].layer == "clamped"
    np.testing.assert_array_equal(found[-1].values, floats(0, 5))


def test_layers_that_run_graphs_are_told_with_what_they_give() -> None:
    found, _ = told(loop(7), {"in0": ints(3)})
    assert [(one.layer, one.operation, one.values.tolist()) for one in found] == [
        ("loop", "While", [7])
    ]


def test_bound_executions_tell_every_time() -> None:
    found: list[DebugValue] = []
    with runtime_of() as runtime:
        x = X.copy()
        execution = Model(chain(2), runtime).bind({"x": x}, debug=found.append)
        execution()
        x += 10
        np.testing.assert_array_equal(execution()["y"], X + 12)
    assert [one.values[0] for one in found] == [0, 1, 10, 11]


def test_the_callers_arrays_are_written_as_without_a_callback() -> None:
    y = np.zeros(4, np.float32)
    with runtime_of() as runtime:
        got = Model(chain(2), runtime).run({"x": X}, {"y": y}, debug=lambda one: None)
    assert got["y"] is y
    np.testing.assert_array_equal(y, X + 2)


def accumulating() -> Network:
    net = Network()
    state = net.variable("state", f32(4))
    total = net.add(ADD, net.input("x", f32(4)), state, name="total")
    net.assign(state, total)
    net.output("y", net.add(MUL, total, net.constant(np.float32(2)), name="double"))
    return net


def test_variables_go_on_from_run_to_run() -> None:
    found: list[DebugValue] = []
    with runtime_of() as runtime:
        model = Model(accumulating(), runtime)
        model.run({"x": X})
        model.run({"x": X}, debug=found.append)
        np.testing.assert_array_equal(model.run({"x": X})["y"], X * 6)
    assert [one.layer for one in found] == ["total", "double"]
    np.testing.assert_array_equal(found[0].values, X * 2)


def raising(error: BaseException) -> Callable[[DebugValue], None]:
    def callback(one: DebugValue) -> None:
        raise error

    return callback


def test_what_the_callback_raises_is_the_callers_and_leaves_the_state() -> None:
    mine = ZeroDivisionError("mine")
    with runtime_of() as runtime:
        model = Model(accumulating(), runtime)
        with pytest.raises(ZeroDivisionError, match="mine") as caught:
            model.run({"x": X}, debug=raising(mine))
        assert caught.value is mine
        np.testing.assert_array_equal(model.run({"x": X})["y"], X * 2)


def test_runs_without_a_callback_are_as_before() -> None:
    with runtime_of(CompilingBackend()) as runtime:
        model = Model(chain(3), runtime)
        model.run({"x": X})
        layers = [layer.operation for layer in model.placement.layers]  # type: ignore[union-attr]
        model.run({"x": X}, debug=lambda one: None)
        model.run({"x": X})
        assert [layer.operation for layer in model.placement.layers] == layers  # type: ignore[union-attr]
        assert layers == ["PreCompiled"]


def test_every_value_counts_against_the_memory_limit() -> None:
    with runtime_of(memory_limit_bytes=200) as runtime:
        model = Model(chain(20), runtime)
        model.run({"x": X})
        with pytest.raises(MemoryLimitError, match="one execution of the network needs too much"):
            model.run({"x": X}, debug=lambda one: None)


def test_working_memory_and_callbacks_do_not_go_together() -> None:
    with runtime_of() as runtime:
        model = Model(chain(2), runtime)
        memory = model.create_working_memory()
        with pytest.raises(InvalidArgumentError, match="no room for every value"):
            model.run({"x": X}, memory=memory, debug=lambda one: None)


def test_something_that_cannot_be_called_is_refused() -> None:
    with runtime_of() as runtime, pytest.raises(InvalidArgumentError, match="cannot be called"):
        Model(chain(2), runtime).run({"x": X}, debug=3)  # type: ignore[arg-type]


def test_names_that_outputs_have_already_do_not_collide() -> None:
    net = Network()
    x = net.input("x", f32(4))
    y = net.add(RELU, x, name="a")
    net.output("a:0#0", y)
    found, outputs = told(net, {"x": X})
    assert [one.layer for one in found] == ["a"]
    assert list(outputs) == ["a:0#0"]
