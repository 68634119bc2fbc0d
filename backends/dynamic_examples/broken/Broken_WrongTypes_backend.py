"""Broken: methods of the contract return things of other types."""

from __future__ import annotations

from armpy.backend import (
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
)

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenWrongTypes"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenWrongTypes")


class Backend(Addition):
    """It returns objects of other types."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Return no factory."""
        return 42  # type: ignore[return-value]  # the fault

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Return no ILayerSupport."""
        return "everything"  # type: ignore[return-value]  # the fault
