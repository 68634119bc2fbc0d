"""The Neural Networks API on isolated backends."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import BackendRegistry, RuntimeOptions
from armpy_nnapi import (
    DURATION_UNAVAILABLE,
    Compilation,
    DeviceManager,
    DurationCode,
    Execution,
    ModelBuilder,
    NnapiError,
    ResultCode,
)
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import FaultyBackend
from armpy_testing.backends.injections import LIMITS


@pytest.mark.slow
def test_device_that_reports_no_time_has_none_in_its_process_either() -> None:
    registry = BackendRegistry()
    registry.register("CpuRef", ReferenceBackend)
    options = RuntimeOptions(["CpuRef"], registry=registry, isolation={"CpuRef": "process"})
    with DeviceManager(options) as manager:
        builder = ModelBuilder(manager)
        total = builder.add(*(builder.input(np.float32, (4,)) for _ in range(2)))
        compilation = Compilation.create_for_devices(builder.finish(total), manager.devices)
        compilation.finish()
        execution, ones = Execution(compilation), np.ones(4, np.float32)
        execution.set_measure_timing(True)
        assert execution.run([ones, ones])[0].tolist() == [2, 2, 2, 2]
        assert execution.get_duration(DurationCode.ON_HARDWARE) == DURATION_UNAVAILABLE
        assert 0 < execution.get_duration(DurationCode.IN_DRIVER) < 60 * 10**9


@pytest.mark.slow
def test_chosen_device_whose_process_ends_is_a_dead_object() -> None:
    registry = BackendRegistry()
    registry.register(faulty.NAME, FaultyBackend)
    registry.register("CpuRef", ReferenceBackend)
    manager = DeviceManager(
        RuntimeOptions(
            backends=[faulty.NAME, "CpuRef"],
            registry=registry,
            isolation={faulty.NAME: "process"},
            isolation_limits=LIMITS,
        )
    )
    device = next(d for d in manager.devices if d.name == faulty.NAME)
    builder = ModelBuilder(manager)
    total = builder.add(*(builder.input(np.float32, (4,)) for _ in range(2)))
    compilation = Compilation.create_for_devices(builder.finish(total), [device])
    compilation.finish()
    ones = np.ones(4, np.float32)
    np.testing.assert_array_equal(compilation(ones * 0, ones)[0], ones)
    with pytest.raises(NnapiError, match="ended by SIGABRT") as caught:
        compilation(ones * faulty.ABORT, ones)
    assert caught.value.code is ResultCode.DEAD_OBJECT
    np.testing.assert_array_equal(compilation(ones * 0, ones)[0], ones)
    manager.close()
