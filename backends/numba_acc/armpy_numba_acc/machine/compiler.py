"""Check if kernels can be compiled here."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from armpy.errors import BackendUnavailableError

_NEEDED = ("numba", "llvmlite")


@cache
def missing_compiler() -> str:
    """Why nothing can be compiled in this process; empty if it can. Nothing is imported."""
    # Numba brings llvmlite in the version that it needs, also where Numba itself is installed.
    is_missing = any(find_spec(name) is None for name in _NEEDED)
    return "no compiler: pip install numba" if is_missing else ""


def broken_compiler() -> str:
    """Why Numba, which is there, cannot be imported; empty if it can. It is imported."""
    try:
        import_module("numba")
    except Exception as error:  # noqa: BLE001  # a damaged package may raise anything
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def check_working_directory() -> None:
    """Check that the working directory exists: Numba asks for it when it compiles.

    Raises
    ------
    BackendUnavailableError
        If it has been deleted.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise BackendUnavailableError(
            "kernels cannot be compiled",
            where="NumbaAcc",
            expected="a working directory, which Numba asks for",
            actual="it has been deleted",
            fix="Change to a directory that exists",
        ) from error
