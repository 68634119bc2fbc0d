"""Broken: it has no `backend_factory`."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenNoBackendFactory"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 0
