"""Imports ONNX Runtime and what builds its models, or says how to get them."""

from __future__ import annotations

import importlib
from types import ModuleType

from armpy.errors import BackendUnavailableError

BACKEND_ID = "OnnxRuntime"


def require(module: str) -> ModuleType:
    """Import a module of the engine.

    Raises
    ------
    BackendUnavailableError
        If it is not installed or cannot be imported; the text names the package.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendUnavailableError(
            f"the Python module '{module}' cannot be imported ({error})",
            where=BACKEND_ID,
            fix=f"Install it: pip install {package}",
        ) from error
