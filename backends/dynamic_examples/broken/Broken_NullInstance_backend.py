"""Broken: its factory returns None."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenNullInstance"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 0


def backend_factory() -> None:
    """Make the backend."""
    return
