"""Decisions of plugins on where layers run; lighter to import than all hooks together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.types import BackendId, Preference

if TYPE_CHECKING:
    from armpy.backend import DeviceFigures, IBackendCache, IBackendInternal
    from armpy.graph import Graph


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way to place the layers that was weighed against others."""

    name: str
    """Backend that gets all it takes, the others the rest; ``mixed`` for other ways."""
    layers_by_backend: dict[BackendId, int]
    estimated_us: float
    """Estimated cost of one execution in microseconds; for least power, of one busy processor."""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    """A placement of every layer of a graph, with the reason for the placement report."""

    backends: Mapping[int, BackendId]
    """One of the backends that take the layer, by layer id."""
    basis: str
    """The reason in a word or two, such as ``estimated``; it becomes `Placement.basis`."""
    alternatives: tuple[Alternative, ...] = ()
    """The compared placements, the cheapest first, with the chosen one."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacementQuestion:
    """A graph that is to be placed, and what a decision may depend on."""

    graph: Graph
    """Fully shaped, after the optimiser's passes."""
    backends: tuple[IBackendInternal, ...]
    """The candidates, most preferred first; their errors are `ArmpyError`."""
    choices: Mapping[int, tuple[BackendId, ...]]
    """By layer id, the backends that support the layer, most preferred first; at least one. Control
    flow that no backend takes is the core's, `armpy.types.HOST`."""
    preference: Preference
    """The goal to minimise; never ``ORDER``."""


@dataclass(frozen=True, slots=True)
class Placer:
    """Functions that decide where layers run, and know how fast devices are on this machine."""

    decide: Callable[[PlacementQuestion], PlacementDecision | None]
    """Called for each graph that is prepared with a preference; None leaves it to the next placer,
    and after the last one to the order of the backends."""
    measured_figures: Callable[[BackendId, str], DeviceFigures | None] | None = None
    """Takes a backend's id and version; returns the figures that were measured, None without."""
    cache: Callable[[], IBackendCache] | None = None
    """The plugin's caches on disk, for ``armpy cache``."""
