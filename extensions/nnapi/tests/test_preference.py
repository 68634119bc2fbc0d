"""NNAPI's execution preference: where operations run, if an application says it."""

from __future__ import annotations

import pytest

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.types import DataType
from armpy_nnapi import Compilation, PreferenceCode
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration

from .nnapi_models import devices_of, sum_model


def device(name: str, exec_time: float, power_usage: float) -> ScriptedBackend:
    figures = DeviceFigures(tensors={DataType.FLOAT32: PerformanceFigures(exec_time, power_usage)})
    return ScriptedBackend(name, declared=declaration(figures=figures))


@pytest.mark.parametrize(
    ("preference", "names"),
    [
        (None, {"Fast"}),  # the order of the devices
        (PreferenceCode.LOW_POWER, {"Cool"}),
        (PreferenceCode.SUSTAINED_SPEED, {"Fast"}),
    ],
)
@pytest.mark.parametrize("chosen", [True, False])
def test_the_preference_decides_where_operations_run(
    preference: PreferenceCode | None, names: set[str], chosen: bool
) -> None:
    # Against CpuRef: a tenth of the time for ten times the energy, and so on.
    devices = device("Fast", 0.1, 10.0), device("Cool", 5.0, 0.25), device("Fair", 0.5, 0.5)
    manager = devices_of(*devices)
    model = sum_model(manager=manager)
    devices_chosen = [manager.get_device_of_backend(target.get_id()) for target in devices]
    compilation = (
        Compilation.create_for_devices(model, devices_chosen) if chosen else Compilation(model)
    )
    if preference is not None:
        compilation.set_preference(preference)
    compilation.finish()
    placement = compilation.network(()).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == names


@pytest.mark.parametrize(
    ("exec_time", "chosen", "name"),
    [(5.0, False, "CpuRef"), (0.5, False, "Vendor"), (5.0, True, "Vendor")],
)
def test_declared_figures_count_without_a_preference(
    exec_time: float, chosen: bool, name: str
) -> None:
    """Unless the application chooses the devices: their order counts then."""
    vendor = device("Vendor", exec_time, 1.0)
    manager = devices_of(vendor)
    model = sum_model(manager=manager)
    if chosen:
        vendor_devices = [manager.get_device_of_backend("Vendor")]
        compilation = Compilation.create_for_devices(model, vendor_devices)
    else:
        compilation = Compilation(model)
    compilation.finish()
    placement = compilation.network(()).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == {name}
