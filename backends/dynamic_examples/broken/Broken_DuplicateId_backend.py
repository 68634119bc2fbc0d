"""Broken: it takes the id of another backend."""

from __future__ import annotations

from armpy.backend import IBackendInternal

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "CpuRef"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Addition("CpuRef")
