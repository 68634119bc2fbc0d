"""Broken: its `optimize_subgraph_view` forgets the layers that it was offered."""

from __future__ import annotations

from armpy.backend import IBackendInternal, OptimizationViews, PreparationRequest
from armpy.graph import SubgraphView

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenDropsLayers"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenDropsLayers")


class Backend(Addition):
    """It forgets layers."""

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Answer nothing."""
        return OptimizationViews()
