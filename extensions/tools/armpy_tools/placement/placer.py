"""The plugin through which `armpy` finds placement by cost; see docs/how_to/placement.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.plugins.hooks import PlacementDecision, PlacementQuestion, Placer, hookimpl

if TYPE_CHECKING:
    from armpy.backend import DeviceFigures, IBackendCache
    from armpy.types import BackendId


@hookimpl
def armpy_register_placer() -> Placer:
    """Placement by the figures of devices, or by trial."""
    return Placer(_decide, _measured_figures, _cache)


# Imports are inside: who lists devices needs no search.
def _decide(question: PlacementQuestion) -> PlacementDecision | None:
    from armpy_tools.placement.search import search  # noqa: PLC0415

    return search(question)


def _measured_figures(backend_id: BackendId, version: str) -> DeviceFigures | None:
    from armpy_tools.devices.store import FiguresStore  # noqa: PLC0415

    record = FiguresStore().read(backend_id, version)
    return record.figures if record else None


def _cache() -> IBackendCache:
    from armpy_tools.devices.cache import DevicesCache  # noqa: PLC0415

    return DevicesCache()
