"""Broken: it says that it supports a layer and then cannot prepare it."""

from __future__ import annotations

from armpy.backend import IBackendInternal, IWorkload, WorkloadInfo
from armpy.ops.operation import Operation

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenFailsToPrepare"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenFailsToPrepare")


class Backend(Addition):
    """Its factory raises."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Fail."""
        raise MemoryError("the device has no memory left")
