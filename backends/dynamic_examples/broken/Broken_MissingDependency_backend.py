"""Broken: it imports a package that is not installed."""

from __future__ import annotations

import acme_accelerator_runtime


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenMissingDependency"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return acme_accelerator_runtime.contract_version


def backend_factory() -> object:
    """Make the backend."""
    raise NotImplementedError("this is never called")
