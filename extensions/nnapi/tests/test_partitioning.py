"""Which device gets which part of a model, and what happens to it when one fails to execute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy.backend import IBackendInternal
from armpy.errors import BackendError
from armpy.ops import Activation, ElementwiseBinary, ElementwiseUnary
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    ModelBuilder,
)
from armpy_testing.backends.scripted_backend import ScriptedBackend, raises, right

from .nnapi_models import FLOAT_2, counting_loop, devices_of, doubled, floats

FAILS = {"execute": raises(BackendError("out of units"))}
LATER = {"execute": [right(), right(), right(), raises(BackendError("out of units"))]}


def chain(manager: DeviceManager) -> Model:
    """RELU of the absolute value of x + (1, -3)."""
    builder = ModelBuilder(manager)
    total = builder.add(builder.input(FLOAT_2), floats(1, -3))
    return builder.finish(builder.relu(builder.abs(total)))


def compiled(model: Model, devices: Sequence[str] | None = None) -> Compilation:
    """A finished compilation, for the devices of some backends if they are named."""
    compilation = Compilation(model)
    if devices is not None:
        chosen = [model.manager.get_device_of_backend(name) for name in devices]
        compilation = Compilation.create_for_devices(model, chosen)
    compilation.finish()
    return compilation


def where(compilation: Compilation) -> list[str]:
    """The backend of each layer, in order of execution."""
    placement = compilation.network(()).placement
    assert placement is not None
    return [layer.backend for layer in placement.layers]


def partitions(compilation: Compilation) -> int:
    """How many parts the model has."""
    placement = compilation.network(()).placement
    assert placement is not None
    return placement.num_partitions


@pytest.mark.parametrize("names", [None, ["Npu"]])
def test_a_device_that_takes_everything_gets_one_part(names: list[str] | None) -> None:
    with devices_of(ScriptedBackend("Npu")) as manager:
        compilation = compiled(chain(manager), names)
        assert compilation(floats(1, 1))[0].tolist() == [2, 2]
        assert (set(where(compilation)), partitions(compilation)) == ({"Npu"}, 1)


def test_of_devices_that_both_take_it_the_first_does() -> None:
    for order in (["One", "Two"], ["Two", "One"]):
        with devices_of(*map(ScriptedBackend, order)) as manager:
            assert set(where(compiled(chain(manager)))) == {order[0]}


def test_each_device_gets_the_largest_part_that_it_takes() -> None:
    first = ScriptedBackend("First", operations=[ElementwiseUnary, Activation])
    second = ScriptedBackend("Second", operations=[ElementwiseBinary])
    with devices_of(first, second) as manager:
        compilation = compiled(chain(manager), ["First", "Second"])
        assert compilation(floats(1, 1))[0].tolist() == [2, 2]
        assert where(compilation) == ["Second", "First", "First"]
        assert partitions(compilation) == 2


def test_an_output_of_the_model_may_be_another_part_s_input() -> None:
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    with devices_of(adder) as manager:
        builder = ModelBuilder(manager)
        total = builder.add(builder.input(FLOAT_2), floats(1, -3))
        model = builder.finish(total, builder.relu(total))
        compilation = compiled(model)
        outputs = [output.tolist() for output in compilation(floats(1, 1))]
        assert outputs == [[2, -2], [2, 0]]
        assert where(compilation) == ["Adder", "CpuRef"]


# Failures in executions.


def test_a_fallback_is_partial_what_other_devices_run_they_keep() -> None:
    failing = ScriptedBackend("Failing", FAILS, operations=[Activation])
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    with devices_of(failing, adder) as manager:
        compilation = compiled(chain(manager))
        assert where(compilation) == ["Adder", "CpuRef", "Failing"]
        assert compilation(floats(1, 1))[0].tolist() == [2, 2]
        assert where(compilation) == ["Adder", "CpuRef", "CpuRef"]


def test_a_device_that_fails_in_the_middle_leaves_no_mixed_result() -> None:
    failing = ScriptedBackend("Npu", {"execute": [right(), right(), *FAILS.values()]})
    with devices_of(failing) as manager:
        execution = Execution(compiled(chain(manager)))
        values, result = floats(1, 1), floats(-7, -7)
        execution.set_input(0, values)
        execution.set_output(0, result)
        execution.compute()
        assert result.tolist() == [2, 2]
        assert values.tolist() == [1, 1]


# Control flow: run by armpy itself, the layers in it by devices.


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScriptedBackend("Failing", FAILS, operations=[Activation]),
        lambda: ScriptedBackend("Failing", FAILS, operations=[ElementwiseBinary]),
        lambda: ScriptedBackend("Failing", LATER, operations=[ElementwiseBinary]),
    ],
    ids=["after the loop", "in its body", "in its body's second turn"],
)
def test_a_device_that_fails_around_a_loop_does_not_make_it_endless(
    make: Callable[[], IBackendInternal],
) -> None:
    with devices_of(make()) as manager:
        compilation = compiled(counting_loop(doubled, 3, manager=manager, tail="relu"))
        for _ in range(2):
            (output,) = compilation(floats(1, -1), np.array([0], np.int32))
            assert output.tolist() == [8, 0]


def test_the_parts_of_a_loop_run_on_several_devices() -> None:
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    rest = ScriptedBackend("Rest")
    with devices_of(adder, rest) as manager:
        compilation = compiled(
            counting_loop(doubled, 3, manager=manager, tail="sqrt"), ["Adder", "Rest"]
        )
        (output,) = compilation(floats(2, 0.5), np.array([0], np.int32))
        assert output.tolist() == [4, 2]
        placement = compilation.network(()).placement
        assert placement is not None
        assert placement.layers_by_backend["Adder"] == 2
        assert placement.layers_by_backend["Rest"] >= 2
        assert "CpuRef" not in {layer.backend for layer in placement.layers}
