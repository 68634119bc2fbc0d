"""Assumed costs of backends that were neither measured nor declare theirs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from armpy.compiler.devices import FigureSource
from armpy.types import BackendId, DeviceType
from armpy_tools.devices.costs import BackendCosts, CopyRate, Rate

_REFERENCE: Mapping[str, Rate] = MappingProxyType(
    {
        "products/float32": Rate(50e-6, 2e-10, 2e-10),
        "products/quant8": Rate(150e-6, 5e-10, 2e-9),
        "elements/float32": Rate(30e-6, 1e-9, 3e-10),
        "elements/quant8": Rate(80e-6, 1e-8, 1e-9),
        "moves/float32": Rate(20e-6, 0.0, 3e-10),
        "*": Rate(50e-6, 1e-8, 1e-9),
    }
)
"""About what NumPy takes on one processor of 2020; only proportions matter."""

ASSUMED_COPY = CopyRate(2e-6, 0.25e-9)
"""Of a backend that does not work in the host's memory: as memory is copied by a processor."""

_TIMES: Mapping[DeviceType, float] = MappingProxyType(
    {
        DeviceType.ACCELERATOR: 0.02,
        DeviceType.GPU: 0.05,
        DeviceType.CPU_COMPILED: 0.1,
        DeviceType.OTHER: 0.5,
        DeviceType.CPU_REFERENCE: 1.0,
    }
)
"""Against the reference; in the order in which armpy prefers kinds of devices."""


def assumed_costs(
    backend_id: BackendId, device_type: DeviceType, *, shares_host_memory: bool = True
) -> BackendCosts:
    """Costs that go by the kind of device alone, so that the usual order of backends comes out."""
    time = _TIMES[device_type]
    rates = {key: rate.scaled(time) for key, rate in _REFERENCE.items()}
    return BackendCosts(
        backend_id,
        FigureSource.ASSUMED,
        rates,
        part_s=20e-6,
        copy_in=ASSUMED_COPY,
        copy_out=ASSUMED_COPY,
        shares_host_memory=shares_host_memory,
    )
