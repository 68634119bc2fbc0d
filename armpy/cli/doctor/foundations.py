"""Diagnoses an installation in which armpy cannot be imported, with the standard library alone."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version

import armpy
from armpy.core.units import shell_word

LIBRARIES = ("numpy", "pluggy", "packaging")
"""Packages without which the doctor itself cannot be imported."""

_LONGEST = 300
"""Characters of a library's error, which may be a page of advice."""


def broken_libraries() -> dict[str, str]:
    """Those of `LIBRARIES` that cannot be imported, each with the error."""
    errors = {}
    for name in LIBRARIES:
        try:
            import_module(name)
        except Exception as error:  # noqa: BLE001  # a damaged package may raise anything
            errors[name] = " ".join(str(error).split())[:_LONGEST]
    return errors


def print_broken_libraries(errors: dict[str, str]) -> None:
    """Print what can be said without them."""
    print("armpy:", armpy.__version__)
    print(f"Python: {platform.python_version()} ({sys.executable})")
    for name, error in errors.items():
        print(f"problem: armpy needs {name}, which cannot be imported: {error}. {_remedy(name)}")
    print("problems:", len(errors))


def _remedy(name: str) -> str:
    """The command that installs a library, or installs it anew."""
    wanted = next(_requirements(name), name)
    try:
        version(name)
    except PackageNotFoundError:
        return f"Run: pip install {shell_word(wanted)}"
    return f"Run: pip install --force-reinstall {shell_word(wanted)}"


def _requirements(name: str) -> Iterator[str]:
    """What armpy's metadata says of a library's version."""
    try:
        texts = requires("armpy") or ()
    except PackageNotFoundError:
        return
    for text in texts:
        requirement = text.partition(";")[0].strip()
        if re.match(r"[\w.-]+", requirement)[0] == name:  # type: ignore[index]  # it has a name
            yield requirement
