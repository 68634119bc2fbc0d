"""Broken: it has no `get_version`."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenNoGetVersion"


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
