"""Imports OpenVINO, or says how to get it."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any

from armpy.errors import BackendUnavailableError

BACKEND_ID = "OpenVino"


@cache
def openvino() -> Any:  # Any: the package's own classes
    """Import the package, without the telemetry that it otherwise starts.

    Raises
    ------
    BackendUnavailableError
        If it is not installed or cannot be imported.
    """
    # It sends an event from a process of its own, and writes to the home directory.
    name = "openvino_telemetry"
    is_blocked = name not in sys.modules
    if is_blocked:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise BackendUnavailableError(
            f"the package 'openvino' cannot be imported ({error})",
            where=BACKEND_ID,
            fix="Run: pip install openvino",
        ) from error
    finally:
        if is_blocked:
            del sys.modules[name]


@cache
def core() -> Any:  # Any: openvino.Core
    """One Core for the process: each loads its plugins anew."""
    return openvino().Core()


def available_devices() -> tuple[str, ...]:
    """Names such as ``CPU``, ``GPU.0`` and ``NPU``, CPU first."""
    names: list[str] = core().available_devices
    return tuple(sorted(names, key=lambda name: (name != "CPU", name)))
