"""Object references, as entry points have them: ``module`` or ``module:object``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from functools import cache
from importlib.machinery import ModuleSpec

from armpy.plugins.extension_tables import FOLDERS

_REFERENCE = r"(?P<module>[\w.]+)\s*(?::\s*(?P<object>[\w.]+)\s*)?(?:\[.*\]\s*)?$"
"""May end in the names of extras, which do not matter here."""


def load_reference(reference: str) -> object:
    """Import what a reference leads to, as `importlib.metadata.EntryPoint.load` does.

    Raises ValueError if the text is not an object reference; BaseException (whatever the module
    raises).
    """
    match = re.match(_REFERENCE, reference)
    if match is None:
        raise ValueError(f"'{reference}' is neither a module nor module:object")
    part: object = importlib.import_module(match["module"])
    for name in filter(None, (match["object"] or "").split(".")):
        part = getattr(part, name)
    return part


def top_module(reference: str) -> str:
    """The name of the outermost module or package of an object reference."""
    return reference.partition(":")[0].strip().partition(".")[0]


def find_top_module(reference: str) -> ModuleSpec | None:
    """Find the file that module would be imported from; None if it cannot be found."""
    name = top_module(reference)
    try:
        # Of the outermost one only: to find a part of a package, Python would import the package.
        return importlib.util.find_spec(name)
    except Exception as error:  # noqa: BLE001 - finders are anybody's code
        import logging  # noqa: PLC0415

        logging.getLogger("armpy.plugins").debug("module '%s' cannot be found: %s", name, error)
        return None


def module_locations(spec: ModuleSpec | None) -> list[str]:
    """The file or folders of a module; empty if it was not found."""
    if spec is None:
        return []
    return list(spec.submodule_search_locations or filter(None, [spec.origin]))


def is_own_file(path: str | None) -> bool:
    """Return whether a file belongs to the running armpy, its backends or its extensions."""
    # By its real place: in a checkout, packages may be linked.
    return path is not None and os.path.realpath(path) in _own_files()


@cache
def _own_files() -> frozenset[str]:
    root = os.path.realpath(f"{__file__}/../../../..")
    packages = {"armpy": "", **{name.replace("-", "_"): place for name, place in FOLDERS.items()}}
    # Beside armpy where installed, and in its project's folder in a checkout.
    return frozenset(
        os.path.join(root, *place.split("/"), package, "__init__.py")
        for package, folder in packages.items()
        for place in ("", folder)
    )
