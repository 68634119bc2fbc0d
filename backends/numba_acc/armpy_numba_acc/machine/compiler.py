"""Check if kernels can be compiled here."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

_NEEDED = ("numba", "llvmlite")


@cache
def missing_compiler() -> str:
    """Why nothing can be compiled in this process; empty if it can. Nothing is imported."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    return f"no compiler: pip install {' '.join(missing)}" if missing else ""
