"""Broken: its `optimize_subgraph_view` raises."""

from __future__ import annotations

from armpy.backend import IBackendInternal, OptimizationViews, PreparationRequest
from armpy.graph import SubgraphView

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenOptimizeRaises"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenOptimizeRaises")


class Backend(Addition):
    """Its compiler raises."""

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Fail."""
        raise ValueError("the compiler does not know this pattern")
