"""Broken: it writes only a part of its output."""

from __future__ import annotations

from armpy.backend import IBackendInternal
from armpy.ops.operation import Array

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenUnwrittenOutput"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenUnwrittenOutput")


class Backend(Addition):
    """It stops half way."""

    def write_sum(self, lhs: Array, rhs: Array, out: Array) -> None:
        """Write the first half."""
        half = out.size // 2
        out.reshape(-1)[:half] = (lhs + rhs).ravel()[:half]
