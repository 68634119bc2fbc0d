"""Broken: it is made for another major version of the contract."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenOtherMajor"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 1, 5


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
