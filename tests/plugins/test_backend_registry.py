"""Registries that applications hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from tests.support.dynamic_modules import module_source, private_modules, write_module
from tests.support.networks import ADD, f32, floats


class Own(ReferenceBackend):
    """A backend that an application brings along."""

    def get_id(self) -> str:
        return "Own"


def model(runtime: Runtime) -> Model:
    net = Network("sum")
    net.output("y", net.add(ADD, net.input("a", f32(2)), net.input("b", f32(2))))
    return Model(net, runtime)


def test_it_has_the_installed_backends_and_those_of_directories(tmp_path: Path) -> None:
    write_module(tmp_path, "Acme_Npu_backend", module_source("Npu"))
    registry = armpy.backend_registry(dynamic_backends_path=tmp_path)
    assert isinstance(registry, armpy.BackendRegistry)
    assert registry.is_registered("CpuRef")
    assert registry.get("Npu").get_id() == "Npu"
    assert {"CpuRef", "Npu", "NumbaAcc"} <= set(registry.backend_ids)
    registry.close()
    assert private_modules() == set()


def test_each_is_one_of_its_own() -> None:
    first, second = armpy.backend_registry(), armpy.backend_registry()
    first.deregister("CpuRef")
    first.register("Own", Own)
    assert first.is_registered("Own")
    assert not first.is_registered("CpuRef")
    assert not second.is_registered("Own")
    assert second.is_registered("CpuRef")


def test_a_backend_needs_only_a_function_that_makes_it() -> None:
    made = []

    def factory() -> Own:
        made.append(Own())
        return made[-1]

    registry = armpy.backend_registry()
    registry.register("Own", factory)
    assert not made
    assert registry.get("Own") is made[0]
    with pytest.raises(InvalidArgumentError, match="'Own' cannot be registered"):
        registry.register("Own", factory)


def test_runtimes_share_it_and_leave_it_open() -> None:
    registry = armpy.backend_registry()
    registry.register("Own", Own)
    options = RuntimeOptions(registry=registry, backends=["Own"])
    with Runtime(options) as first, Runtime(options) as second:
        for runtime in (first, second):
            assert runtime.registry is registry
            np.testing.assert_array_equal(model(runtime)(floats(1, 2), floats(3, 4)), floats(4, 6))
    assert registry.get("Own").get_id() == "Own"


def test_a_runtime_keeps_a_backend_that_is_deregistered() -> None:
    registry = armpy.backend_registry()
    registry.register("Own", Own)
    runtime = Runtime(RuntimeOptions(registry=registry, backends=["Own"]))
    registry.deregister("Own")
    registry.deregister("Own")  # once is enough
    np.testing.assert_array_equal(model(runtime)(floats(1, 2), floats(3, 4)), floats(4, 6))
    with pytest.raises(BackendUnavailableError, match="'Own' from code cannot be used"):
        Runtime(RuntimeOptions(registry=registry, backends=["Own"]))


def test_another_spelling_of_an_id_is_told() -> None:
    with pytest.raises(BackendUnavailableError, match=r"no backend 'cpuref'.*you mean 'CpuRef'"):
        armpy.backend_registry().get("cpuref")


def test_options_that_cannot_be_used_are_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="probe_timeout_s"):
        armpy.backend_registry(probe_timeout_s=0)
