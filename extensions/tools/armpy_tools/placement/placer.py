"""The plugin through which `armpy` finds placement by cost; see docs/how_to/placement.md."""

from __future__ import annotations

from armpy.backend import DeviceFigures
from armpy.plugins.hooks import Placer, hookimpl
from armpy.types import BackendId
from armpy_tools.devices.cache import DevicesCache
from armpy_tools.devices.store import FiguresStore
from armpy_tools.placement.search import search


@hookimpl
def armpy_register_placer() -> Placer:
    """Placement by the figures of devices."""
    return Placer(search, _measured_figures, DevicesCache)


def _measured_figures(backend_id: BackendId, version: str) -> DeviceFigures | None:
    record = FiguresStore().read(backend_id, version)
    return record.figures if record else None
