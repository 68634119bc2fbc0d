"""Imports OpenVINO, or says how to get it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from armpy.errors import BackendUnavailableError

BACKEND_ID = "OpenVino"


@cache
def openvino() -> Any:  # Any: the package's own classes
    """Import the package.

    Raises
    ------
    BackendUnavailableError
        If it is not installed or cannot be imported.
    """
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise BackendUnavailableError(
            f"the package 'openvino' cannot be imported ({error})",
            where=BACKEND_ID,
            fix="Run: pip install openvino",
        ) from error


@cache
def core() -> Any:  # Any: openvino.Core
    """One Core for the process: each loads its plugins anew."""
    return openvino().Core()


def available_devices() -> tuple[str, ...]:
    """Names such as ``CPU``, ``GPU.0`` and ``NPU``, CPU first."""
    names: list[str] = core().available_devices
    return tuple(sorted(names, key=lambda name: (name != "CPU", name)))
