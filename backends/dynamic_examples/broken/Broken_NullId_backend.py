"""Broken: its id is None."""

from __future__ import annotations


def get_backend_id() -> None:
    """Name of the backend."""
    return


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 0


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
