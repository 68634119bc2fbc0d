"""Broken: its results are not numbers."""

from __future__ import annotations

import numpy as np

from armpy.backend import IBackendInternal
from armpy.ops.operation import Array

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenNanResults"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenNanResults")


class Backend(Addition):
    """It computes no numbers."""

    def write_sum(self, lhs: Array, rhs: Array, out: Array) -> None:
        """Fill the output with NaN."""
        out[...] = np.nan
