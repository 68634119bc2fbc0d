"""Compilations for several devices: executions spread over them, and a start on the processor."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import RuntimeOptions
from armpy.backend import postpone_compilation
from armpy_nnapi import Compilation, DeviceManager, ResultCode
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend, wrong_results

from .nnapi_models import fails, sum_model

X = np.array([1, 2], np.float32)


@pytest.mark.parametrize("chosen", [True, False])
def test_the_processor_answers_until_an_accelerator_has_compiled(chosen: bool) -> None:
    may_compile = threading.Event()

    def compile_slowly(call: Call) -> object:
        postpone_compilation("Npu", "the network", is_kept=False)
        assert may_compile.wait(60)
        return call.right()

    # Its results, one too large, distinguish it from CpuRef.
    script = {"optimize": compile_slowly, "execute": wrong_results()}
    npu = ScriptedBackend("Npu", script, compiles=True)
    options = RuntimeOptions(["Npu", "CpuRef"], registry=registry_of(npu, ReferenceBackend()))
    with DeviceManager(options, compile="background") as manager:
        model = sum_model(manager=manager)
        compilation = (
            Compilation.create_for_devices(model, manager.devices) if chosen else Compilation(model)
        )
        compilation.finish()  # would wait for ever otherwise
        for _ in range(10):
            np.testing.assert_array_equal(compilation(X, X)[0], 2 * X)
        may_compile.set()
        tiers = compilation.network(()).tiers
        assert tiers is not None
        tiers.settle(60)
        np.testing.assert_array_equal(compilation(X, X)[0], 2 * X + 1)


def test_an_unknown_way_of_compiling_is_refused() -> None:
    with fails(ResultCode.BAD_DATA, "compile: .* Expected 'wait' or 'background'; got 'later'"):
        DeviceManager(compile="later")
