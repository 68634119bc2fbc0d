"""Broken: its version is no version."""

from __future__ import annotations


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenMalformedVersion"


def get_version() -> str:
    """Version of the contract."""
    return "one point oh"


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
