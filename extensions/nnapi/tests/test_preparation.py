"""NNAPI's preparation: a device's arguments, and the result codes of late or failing ones."""

from __future__ import annotations

import time

import pytest

from armpy.types import Preference, Priority
from armpy_nnapi import Compilation, NnapiError, PreferenceCode, ResultCode
from armpy_testing.backends.scripted_backend import Script, ScriptedBackend, sleeps

from .nnapi_models import devices_of, floats, sum_model


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


def test_the_first_execution_makes_nothing_but_memory() -> None:
    backend = npu()
    compilation = compilation_for(backend)
    compilation.finish()
    made = len(backend.calls_of("create_workload")), len(backend.calls_of("optimize"))
    assert compilation(floats(1, 2), floats(3, 4))[0].tolist() == [4, 6]
    assert made == (len(backend.calls_of("create_workload")), len(backend.calls_of("optimize")))
    assert made == (1, 1)
