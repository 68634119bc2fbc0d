"""NNAPI's preparation: a device's arguments, and the result codes of late or failing ones."""

from __future__ import annotations

import time

import pytest

from armpy.errors import ArmpyError, BackendError, MemoryLimitError, NnapiError, ResultCode
from armpy.types import Preference, Priority
from armpy_nnapi import Compilation, PreferenceCode
from armpy_testing.backends.scripted_backend import Script, ScriptedBackend, raises, sleeps

from .nnapi_models import devices_of, sum_model


def compilation_for(backend: ScriptedBackend) -> Compilation:
    """An addition for one chosen device."""
    manager = devices_of(backend)
    return Compilation.create_for_devices(
        sum_model(manager=manager), [manager.get_device_of_backend(backend.get_id())]
    )


def npu(script: Script | None = None) -> ScriptedBackend:
    return ScriptedBackend("Npu", script, compiles=True)


def test_the_device_receives_preference_priority_and_deadline() -> None:
    backend = npu()
    compilation = compilation_for(backend)
    compilation.set_preference(PreferenceCode.SUSTAINED_SPEED)
    compilation.set_priority(Priority.LOW)
    compilation.set_timeout(60_000_000_000)
    before = time.perf_counter()
    compilation.finish()
    (call,) = backend.calls_of("optimize")
    request = call.arguments["request"]
    assert (request.preference, request.priority) == (Preference.SUSTAINED, Priority.LOW)
    assert before + 60 <= request.deadline_s <= time.perf_counter() + 60


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BackendError("broken"), ResultCode.OP_FAILED),
        (MemoryLimitError("full"), ResultCode.OUT_OF_MEMORY),
        *(
            (NnapiError("as the device says", code=code), code)
            for code in (
                ResultCode.MISSED_DEADLINE_TRANSIENT,
                ResultCode.MISSED_DEADLINE_PERSISTENT,
                ResultCode.RESOURCE_EXHAUSTED_TRANSIENT,
                ResultCode.RESOURCE_EXHAUSTED_PERSISTENT,
                ResultCode.DEAD_OBJECT,
                ResultCode.UNAVAILABLE_DEVICE,
            )
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["optimize", "create_workload"])
def test_a_chosen_device_that_fails_gives_its_result_code(
    error: ArmpyError, code: ResultCode, method: str
) -> None:
    backend = npu({method: raises(error)})
    with pytest.raises(NnapiError) as raised:
        compilation_for(backend).finish()
    assert raised.value.code is code
    assert "Npu" in str(raised.value)


def test_a_device_that_fails_where_none_was_chosen_is_replaced() -> None:
    backend = npu({"optimize": raises(BackendError("broken"))})
    compilation = Compilation(sum_model(manager=devices_of(backend)))
    compilation.finish()
    placement = compilation.network(()).placement
    assert placement is not None
    assert placement.layers_by_backend == {"CpuRef": 1}
    assert "broken" in placement.refusals[0].text


@pytest.mark.parametrize("method", ["optimize", "create_workload"])
def test_a_device_that_takes_too_long_misses_its_deadline(method: str) -> None:
    compilation = compilation_for(npu({method: sleeps(20)}))
    compilation.set_timeout(200_000_000)
    before = time.perf_counter()
    with pytest.raises(NnapiError, match="takes too long") as raised:
        compilation.finish()
    assert raised.value.code is ResultCode.MISSED_DEADLINE_PERSISTENT
    assert time.perf_counter() - before < 15, "finish waited for the device"
    with pytest.raises(NnapiError) as raised:
        compilation.check_ready("here")
    assert raised.value.code is ResultCode.BAD_STATE


def test_a_deadline_that_has_passed_when_the_device_is_asked_is_missed() -> None:
    manager = devices_of()
    model = sum_model(manager=manager)
    compilation = Compilation.create_for_devices(model, [manager.devices[-1]])
    compilation.set_timeout(1)
    with pytest.raises(NnapiError, match="the deadline has passed") as raised:
        compilation.finish()
    assert raised.value.code is ResultCode.MISSED_DEADLINE_PERSISTENT


def test_a_timeout_of_zero_takes_the_limit_away() -> None:
    backend = npu()
    compilation = compilation_for(backend)
    compilation.set_timeout(1)
    compilation.set_timeout(0)
    compilation.finish()
    assert backend.calls_of("optimize")[0].arguments["request"].deadline_s is None


def test_a_timeout_needs_one_chosen_device() -> None:
    manager = devices_of(npu())
    model = sum_model(manager=manager)
    several = Compilation.create_for_devices(model, manager.devices)
    for compilation in (Compilation(model), several):
        with pytest.raises(NnapiError, match="one device") as raised:
            compilation.set_timeout(1_000)
        assert raised.value.code is ResultCode.BAD_DATA


def test_a_timeout_is_no_duration_or_too_late() -> None:
    compilation = compilation_for(npu())
    for duration in (-1, 1.5):
        with pytest.raises(NnapiError) as raised:
            compilation.set_timeout(duration)  # type: ignore[arg-type]  # the test's point
        assert raised.value.code is ResultCode.BAD_DATA
    compilation.finish()
    with pytest.raises(NnapiError) as raised:
        compilation.set_timeout(1_000)
    assert raised.value.code is ResultCode.BAD_STATE


def test_the_state_is_checked_before_the_devices() -> None:
    compilation = Compilation(sum_model(manager=devices_of(npu())))
    compilation.finish()
    with pytest.raises(NnapiError) as raised:
        compilation.set_timeout(1_000)
    assert raised.value.code is ResultCode.BAD_STATE
