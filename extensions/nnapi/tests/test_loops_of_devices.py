"""Devices that execute a WHILE themselves: the loop time-out is theirs, or the core's to keep."""

from __future__ import annotations

import time

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import Capability
from armpy.execution import RuntimeOptions
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    Model,
    ModelBuilder,
    NnapiError,
    OperandCode,
    OperandType,
    ResultCode,
)
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.looping_backend import LoopingBackend

WHOLE = OperandType(OperandCode.TENSOR_INT32, (1,))


def manager_of(backend: LoopingBackend) -> DeviceManager:
    """A manager whose first device takes loops."""
    registry = registry_of(backend, ReferenceBackend())
    return DeviceManager(RuntimeOptions(["Looping", "CpuRef"], registry=registry))


def counting(manager: DeviceManager) -> Model:
    """While the input is below 3, 1 is added."""
    condition, body, outer = (ModelBuilder(manager) for _ in range(3))
    is_less = condition.less(condition.input(WHOLE), np.array([3], np.int32))
    counted = body.add(body.input(WHOLE), np.array([1], np.int32), outputs=WHOLE)
    ends = outer.while_(
        condition.finish(is_less), body.finish(counted), [outer.input(WHOLE)], [WHOLE]
    )
    return outer.finish(*ends)


def execution_of(manager: DeviceManager) -> Execution:
    """An execution of the loop on the device alone."""
    compilation = Compilation.create_for_devices(counting(manager), [manager.devices[0]])
    compilation.finish()
    execution = Execution(compilation)
    execution.set_input(0, np.array([0], np.int32))
    execution.set_output(0, np.zeros(1, np.int32))
    return execution


def test_a_device_that_does_not_stop_its_loop_is_stopped() -> None:
    backend = LoopingBackend()
    with manager_of(backend) as manager:
        execution = execution_of(manager)
        execution.set_loop_timeout(50_000_000)
        started = time.perf_counter()
        with pytest.raises(NnapiError, match=r"its end within 0\.05 s") as caught:
            execution.compute()
        assert time.perf_counter() - started < 5
        assert caught.value.code is ResultCode.MISSED_DEADLINE_TRANSIENT
        backend.go.set()


def test_a_device_receives_the_time_limit_of_the_execution() -> None:
    backend = LoopingBackend(capabilities={Capability.LOOP_TIMEOUT: True})
    backend.is_quick = True
    with manager_of(backend) as manager:
        execution = execution_of(manager)
        execution.set_loop_timeout(1_500_000_000)
        execution.compute()
    assert 1.0 < backend.left_s[-1] <= 1.5
