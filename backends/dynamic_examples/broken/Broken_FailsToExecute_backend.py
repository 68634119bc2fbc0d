"""Broken: it says that it supports a layer and then cannot execute it."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import IBackendInternal, ITensorHandle

from .Broken_common import Addition, get_version

__all__ = ["backend_factory", "get_backend_id", "get_version"]


def get_backend_id() -> str:
    """Name of the backend."""
    return "BrokenFailsToExecute"


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend("BrokenFailsToExecute")


class Backend(Addition):
    """Its workloads raise."""

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Fail."""
        raise OSError("the device was removed")
