"""Figures of devices that were measured, and costs that follow from figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import DeviceFigures, DeviceInfo, PerformanceFigures
from armpy.compiler.devices import DeviceFacts, FigureSource
from armpy.plugins import BackendProxy
from armpy.types import DataType, DeviceType
from armpy_testing.backends.fake_backends import runtime_of
from armpy_tools.devices.assumptions import assumed_costs
from armpy_tools.devices.backend_costs import costs_of
from armpy_tools.devices.costs import BackendCosts, Rate
from armpy_tools.devices.records import DeviceRecord
from armpy_tools.devices.store import FiguresStore

DECLARED = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})


class Declaring(ReferenceBackend):
    """A backend with some declared and some typical figures."""

    version = "7.1"

    def __init__(self, figures: DeviceFigures | None, typical: DeviceFigures | None = None) -> None:
        super().__init__()
        self._figures, self._typical = figures, typical

    def get_id(self) -> str:
        return "Declaring"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo("", DeviceType.GPU, 28, self._figures),)

    def get_typical_figures(self, device: str) -> DeviceFigures | None:
        return self._typical


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FiguresStore:
    """The store that armpy looks into, for this test alone."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    return FiguresStore()


def facts_of(backend: Declaring) -> DeviceFacts:
    with runtime_of(backend) as runtime:
        return runtime.devices[0]


def record(version: str = "7.1", backend: str = "Declaring") -> DeviceRecord:
    rates = {"elements/float32": Rate(8.0, 4.0, 2.0), "elements/quant8": Rate(1.0)}
    costs = BackendCosts(backend, FigureSource.MEASURED, rates, part_s=3.0)
    figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(9.0, 9.0)})
    return DeviceRecord(backend, version, figures, costs)


def test_declared_figures_go_before_measured_ones(store: FiguresStore) -> None:
    store.write(record())
    assert facts_of(Declaring(DECLARED)).figures == DECLARED


def test_measured_figures_stand_for_a_backend_that_declares_none(store: FiguresStore) -> None:
    store.write(record())
    facts = facts_of(Declaring(None))
    assert facts.figures == record().figures
    assert facts.figures_source is FigureSource.MEASURED


def test_figures_of_another_version_are_not_used(store: FiguresStore) -> None:
    store.write(record(version="7.0"))
    assert facts_of(Declaring(None)).figures is None


def test_typical_figures_stand_for_a_device_that_was_not_measured(store: FiguresStore) -> None:
    backend = Declaring(None, typical=DECLARED)
    facts = facts_of(backend)
    assert (facts.figures, facts.figures_source) == (DECLARED, FigureSource.TYPICAL)
    store.write(record())
    facts = facts_of(backend)
    assert (facts.figures, facts.figures_source) == (record().figures, FigureSource.MEASURED)


def test_typical_figures_stand_for_types_that_were_not_measured(store: FiguresStore) -> None:
    byte, half = PerformanceFigures(0.2, 0.3), PerformanceFigures(0.4, 0.5)
    typical = DeviceFigures(
        {DataType.FLOAT32: half, DataType.QASYMM_U8: byte},
        {DataType.BOOLEAN: byte},
        {"com.acme.QUANT64": byte},
        relaxed_tensor=half,
        while_=byte,
    )
    store.write(record())
    facts = facts_of(Declaring(None, typical))
    assert facts.figures_source is FigureSource.MEASURED
    figures = facts.figures
    assert figures is not None
    assert figures.tensors == {**record().figures.tensors, DataType.QASYMM_U8: byte}
    assert (figures.scalars, figures.extensions) == (typical.scalars, typical.extensions)
    assert (figures.relaxed_tensor, figures.relaxed_scalar) == (half, None)
    assert (figures.if_, figures.while_) == (None, byte)


def test_the_references_costs_are_measured_all_the_same(store: FiguresStore) -> None:
    backend = BackendProxy(ReferenceBackend())
    assert costs_of(backend, store).source is FigureSource.ASSUMED
    store.write(record(version=backend.version, backend="CpuRef"))
    assert costs_of(backend, store).part_s == 3.0


def test_costs_are_those_measured(store: FiguresStore) -> None:
    store.write(record())
    assert costs_of(BackendProxy(Declaring(None)), store) == record().costs


def test_declared_costs_are_the_references_times_the_figures(store: FiguresStore) -> None:
    store.write(record(version="any", backend="CpuRef"))
    costs = costs_of(BackendProxy(Declaring(DECLARED)), store)
    assert costs.source is FigureSource.DECLARED
    # Half the time and a quarter of the energy: half the power.
    assert costs.rate_of("Softmax", "float32") == Rate(4.0, 2.0, 1.0, 0.5)


def test_what_is_not_known_goes_by_the_kind_of_device(store: FiguresStore) -> None:
    costs = costs_of(BackendProxy(Declaring(None)), store)
    assert costs == assumed_costs("Declaring", DeviceType.GPU)
    assert costs.source is FigureSource.ASSUMED
    order = [
        assumed_costs("A", kind).rate_of("Softmax", "float32").overhead_s for kind in DeviceType
    ]
    assert order == sorted(order)


def test_declared_control_flow_and_undeclared_types_have_costs(store: FiguresStore) -> None:
    rates = {"If/bool": Rate(8.0), "elements/float32": Rate(4.0), "elements/quant8": Rate(2.0)}
    costs = BackendCosts("CpuRef", FigureSource.MEASURED, rates)
    store.write(DeviceRecord("CpuRef", "1", DeviceFigures(), costs))
    figures = DeviceFigures(
        {DataType.QASYMM_U8: PerformanceFigures(0.5)}, if_=PerformanceFigures(0.25)
    )
    device_costs = costs_of(BackendProxy(Declaring(figures)), store)
    assert device_costs.rate_of("If", "bool").overhead_s == 2.0
    assert device_costs.rate_of("Softmax", "quant8").overhead_s == 1.0
    # As long as the reference, as nothing is said of floats.
    assert device_costs.rate_of("Softmax", "float32").overhead_s == 4.0
