from __future__ import annotations

from pathlib import Path

import pytest
from armpy_reference import ReferenceBackend

from armpy.compiler.devices import FigureSource
from armpy.graph import Layer
from armpy.graph.network import Network
from armpy.ops import If
from armpy.types import HOST, Preference
from armpy_testing.backends.device_memory import DeviceBackend
from armpy_testing.models.control_flow import BOOL, applied
from armpy_testing.models.networks import ADD, MUL, chain, f32, floats
from armpy_tools.devices.costs import BackendCosts, CopyRate, Rate
from armpy_tools.devices.store import FiguresStore
from armpy_tools.placement.cost_table import DeviceCosts, device_costs

MEASURED = FigureSource.MEASURED


def backend(name: str, seconds: float, power: float = 1.0, **others: object) -> BackendCosts:
    """Costs of a backend whose layers all take the same time."""
    return BackendCosts(name, MEASURED, {"*": Rate(seconds, power=power)}, **others)  # type: ignore[arg-type]


def first_layer() -> Layer:
    return chain().layers[0]


@pytest.mark.parametrize(
    ("preference", "cool", "hot"),
    # Time; energy = time * power; time, as throughput is what a sustained speed is.
    [
        (Preference.FASTEST, 40.0, 10.0),
        (Preference.LEAST_POWER, 20.0, 50.0),
        (Preference.SUSTAINED, 40.0, 10.0),
    ],
)
def test_a_layer_costs_time_or_energy_as_the_preference_says(
    preference: Preference, cool: float, hot: float
) -> None:
    devices = {"Cool": backend("Cool", 40e-6, 0.5), "Hot": backend("Hot", 10e-6, 5.0)}
    costs = DeviceCosts(devices, preference)
    assert costs.layer(first_layer(), "Cool") == pytest.approx(cool)
    assert costs.layer(first_layer(), "Hot") == pytest.approx(hot)


def test_a_crossing_costs_the_copies_and_the_part_that_reads() -> None:
    far = backend(
        "Far",
        1e-6,
        part_s=5e-6,
        copy_in=CopyRate(3e-6, 1e-6),
        copy_out=CopyRate(7e-6),
        shares_host_memory=False,
    )
    near = backend("Near", 1e-6, part_s=2e-6)
    costs = DeviceCosts({"Near": near, "Far": far}, Preference.FASTEST)
    value = chain(1, (4,)).inputs[0]  # 16 bytes
    assert costs.crossing(value, HOST, "Near") == pytest.approx(2)
    assert costs.crossing(value, "Near", "Far") == pytest.approx(5 + 3 + 16)
    assert costs.crossing(value, "Far", "Near") == pytest.approx(2 + 7)
    assert costs.crossing(value, "Far", HOST) == pytest.approx(7)


def branches() -> Layer:
    """An If of ADD or MUL."""
    net = Network("if")
    condition, x = net.input("condition", BOOL), net.input("x", f32(4))
    branch = If(applied(ADD, floats(1), f32(4)), applied(MUL, floats(2), f32(4)))
    net.output("y", net.add(branch, condition, x, name="if"))
    return net.build().layers[0]


def test_an_if_costs_half_of_both_branches_and_in_the_core_where_they_are_cheapest() -> None:
    devices = {"A": backend("A", 10e-6), "B": backend("B", 4e-6)}
    costs = DeviceCosts(devices, Preference.FASTEST)
    assert costs.layer(branches(), "A") == pytest.approx(10 + (10 + 10) / 2)
    assert costs.layer(branches(), HOST) == pytest.approx((4 + 4) / 2)


def test_a_backend_with_memory_of_its_own_pays_for_copies(tmp_path: Path) -> None:
    device, cpu = DeviceBackend(), ReferenceBackend()
    costs = device_costs([device, cpu], Preference.FASTEST, FiguresStore(tmp_path))
    small, large = chain(1, (4,)).inputs[0], chain(1, (4_000_000,)).inputs[0]
    assert costs.crossing(small, cpu.get_id(), HOST) == 0
    assert costs.crossing(large, cpu.get_id(), HOST) == 0
    assert costs.crossing(small, device.get_id(), HOST) > 0
    assert costs.crossing(large, device.get_id(), HOST) > 1000  # 16 MB in a millisecond at most
