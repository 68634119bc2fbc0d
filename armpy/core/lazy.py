"""Lazy exports of packages: a name's module is imported when the name is first asked for.

Notes
-----
A process pays for what it uses: a model of three kinds of layers needs the definitions of three
operations. What a package exports stands once, in the stub that type checkers read in its place
(the form of the lazy-loader package): ``__init__.pyi`` has a line for each name, or one for all
that a module has in its ``__all__``::

    from armpy.model.model import Model as Model
    from armpy.ops.convolution import *

and ``__init__.py`` has the functions that modules may have for this (PEP 562)::

    __getattr__, __dir__ = offer(__name__)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

from armpy.core.module_tables import ModuleTables, package_file

_IMPORT = re.compile(r"^from ([\w.]+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


def offer(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Lazy ``__getattr__`` and ``__dir__`` of a package that exports what its stub says.

    Parameters
    ----------
    package : str
        Its name.

    Notes
    -----
    ``__all__`` is among what can be asked for, and so are the package's modules. ``dir`` tells
    what the stub exports, and nothing of the modules and helpers that are loaded so far.
    """
    contents = vars(sys.modules[package])
    exports: _Exports | None = None

    def known() -> _Exports:
        """What the stub says, read when something is asked for."""
        nonlocal exports
        exports = exports or _Exports(package)
        return exports

    def find(name: str) -> object:
        """Import what is asked for; from then on it is there."""
        found = sorted(known().names()) if name == "__all__" else known().find(name)
        contents[name] = found
        return found

    def names() -> list[str]:
        """Every name that the stub exports."""
        return sorted(known().names())

    return find, names


class _Exports:
    """Exports of a package, as its stub states them."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._sources: dict[str, str] = {}
        self._families: list[str] = []
        stub = package_file(package, "__init__.pyi").decode()
        for source, several, one in _IMPORT.findall(stub):
            if one == "*":
                self._families.append(source)
            names = re.findall(r"as (\w+)", several or one)
            self._sources.update(dict.fromkeys(names, source))
        modules = [family.removeprefix(f"{package}.") for family in self._families]
        self._tables = ModuleTables(package, "__all__", modules)

    def names(self) -> set[str]:
        """Every name."""
        return {*self._sources, *(name for f in self._tables.modules() for name in f.__all__)}

    def find(self, name: str) -> object:
        """Import what a name stands for.

        Raises
        ------
        AttributeError
            If it stands for nothing.
        """
        source = self._sources.get(name, self._package)
        if source != self._package:
            return getattr(import_module(source), name)
        for family in self._loaded_first(name):
            if name in family.__all__:
                return getattr(family, name)
        return self._module(name)

    def _loaded_first(self, name: str) -> Iterator[ModuleType]:
        """Families that may export a name; the others' texts are read if no imported one does."""
        for family in self._families:
            if hasattr(sys.modules.get(family), "__all__"):
                yield import_module(family)  # another thread may still be at it
        yield from self._tables.mentioning(name)

    def _module(self, name: str) -> object:
        """Import a module of the package."""
        missing = AttributeError(f"module '{self._package}' has no attribute '{name}'")
        if name.startswith("_") or not name.isidentifier():
            raise missing
        full_name = f"{self._package}.{name}"
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise
            raise missing from None
