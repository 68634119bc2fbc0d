"""Backends in C: hosts shared libraries with the interface of ``armpy_backend.h``."""

from pathlib import Path

from armpy_native.backend import (
    NativeBackend as NativeBackend,
)
from armpy_native.backend import (
    backend as backend,
)
from armpy_native.backend import (
    open_library as open_library,
)

__all__ = ["HEADER", "NativeBackend", "backend", "open_library"]

HEADER = Path(__file__).with_name("armpy_backend.h")
"""The header that libraries are built with."""
