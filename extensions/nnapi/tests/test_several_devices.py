"""Compilations for several devices: executions spread over them, and a start on the processor."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import RuntimeOptions
from armpy.backend import postpone_compilation
from armpy_nnapi import Compilation, DeviceManager, ResultCode
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend, wrong_results

from .nnapi_models import devices_of, fails, sum_model

X = np.array([1, 2], np.float32)


def test_executions_are_spread_over_the_chosen_devices_and_survive_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[str] = []
    is_broken = threading.Event()

    def fail_later() -> None:
        calls.append("A")
        if is_broken.is_set():
            raise RuntimeError("the device is gone")

    devices = (
        FakeBackend("A", before_execute=fail_later),
        FakeBackend("B", before_execute=lambda: calls.append("B")),
        FakeBackend("C", before_execute=lambda: calls.append("C")),
    )
    manager = devices_of(*devices, spread="calls")
    chosen = [manager.get_device_of_backend(name) for name in "AB"]
    compilation = Compilation.create_for_devices(sum_model(manager=manager), chosen)
    compilation.finish()
    for number in range(4):
        np.testing.assert_array_equal(compilation(X, X + number)[0], 2 * X + number)
    assert set(calls) == {"A", "B"}  # not C, which was not chosen
    is_broken.set()
    with caplog.at_level(logging.WARNING, "armpy.execution"):
        for number in range(20):
            np.testing.assert_array_equal(compilation(X, X + number)[0], 2 * X + number)
            compilation.network(()).spread.backends[0].seconds.clear()  # type: ignore[union-attr]  # A is asked again
    assert caplog.text.count("A failed and gets no more executions") == 1
    placement = compilation.network(()).placement
    assert placement is not None
    assert {layer.backend for layer in placement.layers} == {"A", "B"}


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
