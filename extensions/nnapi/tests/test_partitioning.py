"""Which device gets which part of a model, and what happens to it when one fails to execute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy.backend import DeviceFigures, IBackendInternal, PerformanceFigures
from armpy.errors import BackendError, BackendUnavailableError, DeadObjectError, ResultCode
from armpy.ops import Activation, ElementwiseBinary, ElementwiseUnary
from armpy.types import DataType
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    PreferenceCode,
)
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration, raises, right

from .nnapi_models import BOOL_1, FLOAT_2, devices_of, fails, floats

COUNT = OperandType(OperandCode.TENSOR_INT32, (1,))
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


def test_what_no_chosen_device_takes_is_bad_data_and_not_the_reference_s() -> None:
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    with devices_of(adder) as manager:
        with fails(ResultCode.BAD_DATA, r"operation 1 \(ABS\): none of the chosen devices"):
            compiled(chain(manager), ["Adder"])
        assert set(where(compiled(chain(manager)))) == {"Adder", "CpuRef"}


def test_parts_with_open_dimensions_between_them_run_where_they_can() -> None:
    """NNAPI gives such a model to the reference whole."""
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    with devices_of(adder) as manager:
        builder = ModelBuilder(manager)
        x = builder.input(OperandType(OperandCode.TENSOR_FLOAT32, (0,)))
        compilation = compiled(builder.finish(builder.relu(builder.add(x, x))))
        for values in ([1, -1], [2, -2, 3]):
            (output,) = compilation(np.array(values, np.float32))
            assert output.tolist() == [max(0, 2 * v) for v in values]
        assert where(compilation) == ["Adder", "CpuRef"]


def of_power(backend_id: str, power: float) -> ScriptedBackend:
    """A device as fast as the reference that takes this part of its power."""
    figures = DeviceFigures(tensors={DataType.FLOAT32: PerformanceFigures(1.0, power)})
    return ScriptedBackend(backend_id, declared=declaration(figures=figures))


@pytest.mark.parametrize(
    ("powers", "chosen"),
    [
        ({"One": 0.5, "Two": 0.4}, "Two"),
        ({"One": 0.4, "Two": 0.5}, "One"),
        ({"One": 0.5, "Two": 0.5}, "One"),
        ({"One": 1.5, "Two": 1.2}, "CpuRef"),
    ],
)
def test_where_power_counts_the_device_that_takes_least_gets_the_model(
    powers: dict[str, float], chosen: str
) -> None:
    with devices_of(*(of_power(*item) for item in powers.items())) as manager:
        builder = ModelBuilder(manager)
        ones = np.ones((300, 300), np.float32)
        total = builder.add(builder.input(np.float32, (300, 300)), ones)
        model = builder.finish(builder.relu(builder.abs(total)))
        for preference, expected in ((PreferenceCode.LOW_POWER, chosen), (None, "One")):
            compilation = Compilation(model)
            if preference is not None:
                compilation.set_preference(preference)
            compilation.finish()
            assert set(where(compilation)) == {expected}


# Failures in executions.


@pytest.mark.parametrize(
    "error",
    [
        BackendError("out of units"),
        ValueError("a mistake"),
        BackendUnavailableError("unplugged"),
        DeadObjectError("its process is gone"),
    ],
)
def test_what_a_device_fails_to_execute_is_executed_by_the_reference(error: Exception) -> None:
    npu = ScriptedBackend("Npu", {"execute": raises(error)})
    with devices_of(npu) as manager:
        compilation = compiled(chain(manager))
        assert set(where(compilation)) == {"Npu"}
        assert compilation(floats(1, 1))[0].tolist() == [2, 2]
        assert set(where(compilation)) == {"CpuRef"}
        npu.forget()
        assert compilation(floats(2, 2))[0].tolist() == [3, 1]
        assert npu.calls_of("execute") == []


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


@pytest.mark.parametrize("others", [[], ["Other"]])
def test_of_chosen_devices_a_failure_is_the_application_s_to_deal_with(others: list[str]) -> None:
    npu, other = ScriptedBackend("Npu", FAILS), ScriptedBackend("Other")
    with devices_of(npu, other) as manager:
        compilation = compiled(chain(manager), ["Npu", *others])
        with fails(ResultCode.OP_FAILED, "out of units"):
            compilation(floats(1, 1))
        assert other.calls_of("execute") == []


def test_an_output_that_does_not_fit_is_no_failure_of_the_device() -> None:
    npu = ScriptedBackend("Npu")
    with devices_of(npu) as manager:
        builder = ModelBuilder(manager)
        open_type = OperandType(OperandCode.TENSOR_FLOAT32, (0,))
        model = builder.finish(builder.floor(builder.input(open_type)))
        compilation = compiled(model)
        execution = Execution(compilation)
        execution.set_input(0, floats(1, 2, 3), OperandType(OperandCode.TENSOR_FLOAT32, (3,)))
        execution.set_output(0, bytearray(4))
        with fails(ResultCode.OUTPUT_INSUFFICIENT_SIZE, "12 bytes"):
            execution.compute()
        assert set(where(compilation)) == {"Npu"}


# Control flow: run by armpy itself, the layers in it by devices.


def loop(manager: DeviceManager, tail: str = "") -> Model:
    """Twice x while a counter is below 3, and then an operation of that name."""
    until = ModelBuilder(manager)
    until.input(FLOAT_2)
    count = until.input(COUNT)
    until_model = until.finish(until.less(count, np.array([3], np.int32), outputs=[BOOL_1]))
    body = ModelBuilder(manager)
    x, count = body.input(FLOAT_2), body.input(COUNT)
    doubled = body.add(x, x, outputs=[FLOAT_2])
    more = body.add(count, np.array([1], np.int32), outputs=[COUNT])
    body_model = body.finish(doubled, more)
    outer = ModelBuilder(manager)
    x, start = outer.input(FLOAT_2), outer.input(COUNT)
    looped, _ = outer.while_(until_model, body_model, [x, start], [FLOAT_2, COUNT])
    return outer.finish(getattr(outer, tail)(looped) if tail else looped)


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
        compilation = compiled(loop(manager, "relu"))
        for _ in range(2):
            (output,) = compilation(floats(1, -1), np.array([0], np.int32))
            assert output.tolist() == [8, 0]


def test_the_parts_of_a_loop_run_on_several_devices() -> None:
    adder = ScriptedBackend("Adder", operations=[ElementwiseBinary])
    rest = ScriptedBackend("Rest")
    with devices_of(adder, rest) as manager:
        compilation = compiled(loop(manager, "sqrt"), ["Adder", "Rest"])
        (output,) = compilation(floats(2, 0.5), np.array([0], np.int32))
        assert output.tolist() == [4, 2]
        placement = compilation.network(()).placement
        assert placement is not None
        assert placement.layers_by_backend["Adder"] == 2
        assert placement.layers_by_backend["Rest"] >= 2
        assert "CpuRef" not in {layer.backend for layer in placement.layers}
