"""Broken: it is made for a later minor version of the contract than there is."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenVersionTooNew"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 999


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
