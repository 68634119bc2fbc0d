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


def test_a_device_that_fails_when_dimensions_are_known_gives_its_code_then() -> None:
    failing = ScriptedBackend("Npu", {"create_workload": raises(BackendUnavailableError("gone"))})
    with devices_of(failing) as manager:
        model = sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager)
        compilation = Compilation.create_for_devices(model, manager.devices[:1])
        compilation.finish()
        with fails(ResultCode.UNAVAILABLE_DEVICE, "gone"):
            compilation(floats(1, 2), floats(3, 4))
