"""Devices that fail when a model is prepared, with scripted backends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from armpy.errors import (
    ArmpyError,
    BackendError,
    BackendUnavailableError,
    DeadObjectError,
    ExecutionTimeoutError,
    MemoryLimitError,
)
from armpy.ops import ElementwiseBinary
from armpy_nnapi import Compilation, DeviceManager, NnapiError, ResultCode
from armpy_testing.backends.scripted_backend import ScriptedBackend, raises

from .nnapi_models import FLOAT_OPEN, devices_of, fails, floats, sum_model

FAILURES = [
    (BackendError("out of units"), ResultCode.OP_FAILED),
    (BackendUnavailableError("unplugged"), ResultCode.UNAVAILABLE_DEVICE),
    (MemoryLimitError("no memory on the device"), ResultCode.OUT_OF_MEMORY),
    (ExecutionTimeoutError("too slow"), ResultCode.MISSED_DEADLINE_TRANSIENT),
    (NnapiError("it is gone", code=ResultCode.DEAD_OBJECT), ResultCode.DEAD_OBJECT),
    (DeadObjectError("its process is gone"), ResultCode.DEAD_OBJECT),
    (ValueError("a mistake of its own"), ResultCode.OP_FAILED),
]


def chosen(manager: DeviceManager, names: Sequence[str]) -> Compilation:
    """A compilation for some of the devices."""
    devices = [manager.get_device_of_backend(name) for name in names]
    return Compilation.create_for_devices(sum_model(manager=manager), devices)


@pytest.mark.parametrize("method", ["optimize", "create_factory", "create_workload"])
@pytest.mark.parametrize(("error", "code"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_chosen_device_that_fails_to_prepare_gives_its_own_code(
    method: str, error: Exception, code: ResultCode
) -> None:
    with devices_of(ScriptedBackend("Npu", {method: raises(error)})) as manager:
        compilation = chosen(manager, ["Npu"])
        with fails(code, str(error.args[0]) if not isinstance(error, ArmpyError) else error.failed):
            compilation.finish()
        with fails(ResultCode.BAD_STATE, "the compilation is finished"):
            compilation.finish()


def test_the_code_is_that_of_the_device_that_failed_although_another_refused() -> None:
    failing = ScriptedBackend("Npu", {"create_workload": raises(BackendUnavailableError("gone"))})
    with devices_of(failing, ScriptedBackend("Other", operations=[])) as manager:
        for names in (["Npu", "Other"], ["Other", "Npu"]):
            with fails(ResultCode.UNAVAILABLE_DEVICE, "Npu: preparation failed: .*gone"):
                chosen(manager, names).finish()


def test_another_chosen_device_takes_what_one_fails_to_prepare() -> None:
    failing = ScriptedBackend("Npu", {"optimize": raises(BackendError("out of units"))})
    with devices_of(failing, ScriptedBackend("Gpu")) as manager:
        compilation = chosen(manager, ["Npu", "Gpu"])
        compilation.finish()
        assert compilation(floats(1, 2), floats(3, 4))[0].tolist() == [4, 6]


def test_without_a_choice_the_reference_takes_what_a_device_fails_to_prepare() -> None:
    failing = ScriptedBackend("Npu", {"optimize": raises(BackendUnavailableError("gone"))})
    with devices_of(failing) as manager:
        compilation = Compilation(sum_model(manager=manager))
        compilation.finish()
        assert compilation(floats(1, 2), floats(3, 4))[0].tolist() == [4, 6]
        placement = compilation.network(()).placement
        assert placement is not None
        assert [(r.backend, r.code) for r in placement.refusals] == [("Npu", "compilation")]


def test_a_device_that_fails_when_dimensions_are_known_gives_its_code_then() -> None:
    failing = ScriptedBackend("Npu", {"create_workload": raises(BackendUnavailableError("gone"))})
    with devices_of(failing) as manager:
        model = sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager)
        compilation = Compilation.create_for_devices(model, manager.devices[:1])
        compilation.finish()
        with fails(ResultCode.UNAVAILABLE_DEVICE, "gone"):
            compilation(floats(1, 2), floats(3, 4))


def test_what_is_kept_of_a_failure_keeps_nothing_else_alive() -> None:
    failing = ScriptedBackend(
        "Npu", {"create_workload": raises(BackendError("x"))}, operations=[ElementwiseBinary]
    )
    with devices_of(failing) as manager:
        compilation = chosen(manager, ["Npu"])
        with pytest.raises(NnapiError) as caught:
            compilation.finish()
    refusal = caught.value.__cause__
    assert refusal is not None
    failure = refusal.__cause__
    assert isinstance(failure, BackendError)
    assert failure.__traceback__ is None
