"""Relaxed models: backends that can compute float32 less exactly may do so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.execution import RuntimeOptions
from armpy.graph import SubgraphView
from armpy_nnapi import Compilation, DeviceManager, Model, OperationCode
from armpy_testing.backends.fake_backends import FakeBackend, registry_of

from .nnapi_models import FLOAT_2, add_activation, add_operands, floats


class Careful(FakeBackend):
    """Remembers the options of each network."""

    def __init__(self, options: Sequence[BackendOption]) -> None:
        super().__init__("Careful")
        self._declared = options
        self.received: list[OptionValues] = []

    @property
    def options(self) -> Sequence[BackendOption]:
        return self._declared

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self.received.append(request.model_options)
        return super().optimize_subgraph_view(view, request)


FAST = BackendOption("fast_math_enabled", False, "May be quick.", OptionScope.MODEL)


def options_received(
    options: Sequence[BackendOption],
    *,
    is_relaxed: bool,
    given: Mapping[str, object] | None = None,
    by_device: bool = False,
) -> list[OptionValues]:
    """Options that a backend receives for a model with one sum."""
    backend = Careful(options)
    chosen = RuntimeOptions(
        backends=["Careful", "CpuRef"],
        registry=registry_of(backend, ReferenceBackend()),
        backend_options={"Careful": given} if given else {},
    )
    with DeviceManager(chosen) as manager:
        model = Model(manager)
        a, b, total = add_operands(model, FLOAT_2, FLOAT_2, FLOAT_2)
        model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
        model.identify_inputs_and_outputs([a, b], [total])
        model.relax_computation_float32_to_float16(is_relaxed)
        model.finish()
        devices = [manager.get_device_of_backend("Careful")]
        compilation = (
            Compilation.create_for_devices(model, devices) if by_device else Compilation(model)
        )
        compilation.finish()
        (result,) = compilation(floats(1, 2), floats(3, 4))
        np.testing.assert_array_equal(result, floats(4, 6))
    return backend.received


@pytest.mark.parametrize("by_device", [False, True])
def test_the_option_is_set_for_relaxed_models_only(by_device: bool) -> None:
    assert options_received([FAST], is_relaxed=True, by_device=by_device) == [
        {"fast_math_enabled": True}
    ]
    for options in options_received([FAST], is_relaxed=False, by_device=by_device):
        assert not options.get("fast_math_enabled", False)


def test_what_the_managers_options_say_is_kept() -> None:
    options = {"fast_math_enabled": False}
    assert options_received([FAST], is_relaxed=True, given=options) == [options]
    other = BackendOption("depth", 3, "How deep.", OptionScope.MODEL)
    expected = {"fast_math_enabled": True, "depth": 5}
    assert options_received([FAST, other], is_relaxed=True, given={"depth": 5}) == [expected]


class Asking(FakeBackend):
    """Has no option, and remembers whether each network is relaxed."""

    level = 30

    def __init__(self) -> None:
        super().__init__("Careful")
        self.received: list[bool] = []

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(feature_level=self.level),)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        self.received.append(request.relaxed)
        return super().get_layer_support(request)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self.received.append(request.relaxed)
        return super().optimize_subgraph_view(view, request)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.received.append(network.relaxed)
        return super().create_workload_factory(network)


@pytest.mark.parametrize("is_relaxed", [False, True])
@pytest.mark.parametrize("level", [27, 28, 30])
def test_every_backend_has_the_field_from_the_level_that_defines_it(
    is_relaxed: bool, level: int
) -> None:
    backend = Asking()
    backend.level = level
    registry = registry_of(backend, ReferenceBackend())
    with DeviceManager(RuntimeOptions(["Careful", "CpuRef"], registry=registry)) as manager:
        model = Model(manager)
        a, b, total = add_operands(model, FLOAT_2, FLOAT_2, FLOAT_2)
        model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
        model.identify_inputs_and_outputs([a, b], [total])
        model.relax_computation_float32_to_float16(is_relaxed)
        model.finish()
        compilation = Compilation(model)
        compilation.finish()
        np.testing.assert_array_equal(compilation(floats(1, 2), floats(3, 4))[0], floats(4, 6))
    assert set(backend.received) == {is_relaxed and level > 27}
