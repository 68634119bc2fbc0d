"""Imports LiteRT's interpreter and loads delegates, or names the missing package."""

from __future__ import annotations

import ctypes
import importlib
import json
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from armpy.errors import BackendUnavailableError, InvalidArgumentError

MODULES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter")
"""Packages that have the interpreter, the preferred one first."""


@cache
def interpreter_module(backend_id: str) -> ModuleType:
    """Import the module of the interpreter.

    Raises
    ------
    BackendUnavailableError
        If no package has it, or another module is under its name; the text names them.
    """
    failures, replaced_by = [], ""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            failures.append(str(error))
        else:
            if module.__name__ == name:
                return module
            replaced_by = module.__name__.partition(".")[0]
    if replaced_by:
        raise BackendUnavailableError(
            f"{replaced_by} stands in for the engine in this process",
            where=backend_id,
            fix=f"Call armpy.load in a program without {replaced_by} to use the engine",
        )
    raise BackendUnavailableError(
        f"no interpreter can be imported ({'; '.join(failures)})",
        where=backend_id,
        fix="Run: pip install ai-edge-litert",
    )


@cache
def engine_version() -> str:
    """Distribution and version of the interpreter; empty if there is none."""
    for module in MODULES:
        distribution = module.partition(".")[0].replace("_", "-")
        with suppress(PackageNotFoundError):
            return f"{distribution} {version(distribution)}"
    return ""


def delegate_options(text: str, where: str) -> dict[str, str]:
    """Options of a delegate, of the JSON object that names them.

    Raises
    ------
    InvalidArgumentError
        If it is not such an object.
    """
    try:
        options = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidArgumentError(
            f"delegate_options is not JSON ({error})",
            where=where,
            expected="an object",
            actual=text,
        ) from error
    if not isinstance(options, dict):
        raise InvalidArgumentError(
            "delegate_options is not an object", where=where, expected="an object", actual=text
        )
    return {str(name): str(value) for name, value in options.items()}


def load_delegate(library: str, options: dict[str, str], where: str) -> Any:  # Any: the engine's
    """Load a delegate's library.

    Raises
    ------
    BackendUnavailableError
        If it cannot be loaded, or refuses its options or the machine.
    """
    try:
        ctypes.CDLL(library)  # where this fails, the engine's object would fail again when it dies
        return interpreter_module(where).load_delegate(library, options)
    except (AttributeError, OSError, ValueError, RuntimeError) as error:
        raise BackendUnavailableError(
            f"the delegate '{library}' cannot be loaded ({error})",
            where=where,
            fix="Install the vendor's runtime, and see that the loader finds the library",
        ) from error
