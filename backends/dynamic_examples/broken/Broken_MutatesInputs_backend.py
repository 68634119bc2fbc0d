"""Broken: it uses its input's memory for the sum before it copies that to the output."""

from __future__ import annotations

import ctypes

import numpy as np

from armpy.backend import IBackendInternal
from armpy.ops.operation import Array

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenMutatesInputs"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenMutatesInputs")


class Backend(Addition):
    """It adds in place."""

    def write_sum(self, lhs: Array, rhs: Array, out: Array) -> None:
        """Add in place, even where the memory is marked as not to be written to."""
        target = _writable(lhs) if lhs.shape == out.shape else lhs + 0
        target += rhs
        out[...] = target


def _writable(array: Array) -> Array:
    """The same memory without its write protection, as code in C sees it."""
    pointer = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(pointer, array.shape)
