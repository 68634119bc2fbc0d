"""Registries without an index: tables in a package's modules, found without importing them all.

Notes
-----
What a module has of a kind of thing (the converters of some operators) stands in a table of its
own, and nowhere is written which module that is. So the modules' texts are looked into, which
takes a fiftieth of the time that importing them takes. A text only says which modules to import;
what is in them then is what counts.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

_WORD = re.compile(rb"\w+")


class ModuleTables:
    """Tables of one name in a package's modules.

    Parameters
    ----------
    package : str
    table : str
        What each module calls its table. A table begins a line and ends before an empty one.
    modules : iterable of str, optional
        Names of modules in the package; all of them by default.

    Notes
    -----
    A module without a text is imported to see: a package may hold compiled files alone.
    """

    def __init__(self, package: str, table: str, modules: Iterable[str] | None = None) -> None:
        self._package = package
        self._table = table
        self._modules = modules
        self._entries: dict[object, Any] = {}

    def entry(self, key: object, word: str) -> Any:  # Any: whatever the tables hold
        """What stands for a key in the one table that has it; None if none has.

        Parameters
        ----------
        key : hashable
        word : str
            What the table's text has for it, see `mentioning`.

        Notes
        -----
        Every table must be a mapping. What has been found once is kept.
        """
        if key not in self._entries:
            tables = (getattr(module, self._table) for module in self.mentioning(word))
            self._entries[key] = next((table[key] for table in tables if key in table), None)
        return self._entries[key]

    def mentioning(self, word: str) -> Iterator[ModuleType]:
        """Import modules in whose table a word stands.

        Parameters
        ----------
        word : str
            A name, or part of a key: letters, digits and underscores.
        """
        sought = word.encode()
        for module, words in self._words.items():
            if words is None or sought in words:
                yield from self._imported(module)

    def modules(self) -> Iterator[ModuleType]:
        """Import every module that has a table, in alphabetical order."""
        for module in self._words:
            yield from self._imported(module)

    def _imported(self, module: str) -> Iterator[ModuleType]:
        """Import a module; nothing if it has no table after all."""
        found = import_module(f"{self._package}.{module}")
        if hasattr(found, self._table):
            yield found

    @cached_property
    def _words(self) -> dict[str, frozenset[bytes] | None]:
        """What stands in the table of each module that has one; None where that cannot be seen."""
        # Its folder is known of an imported package only.
        import_module(self._package)
        names = _modules_of(self._package) if self._modules is None else sorted(self._modules)
        start = b"\n" + self._table.encode()
        found: dict[str, frozenset[bytes] | None] = {}
        for name in names:
            try:
                text = package_file(self._package, f"{name}.py")
            except OSError:
                found[name] = None
                continue
            if (position := text.find(start)) >= 0:
                table = text[position:].partition(b"\n\n")[0]
                found[name] = frozenset(_WORD.findall(table))
        return found


def package_file(package: str, name: str) -> bytes:
    """The bytes of a file in an imported package, be it a folder or a zip file.

    Raises
    ------
    OSError
        If there is no such file.
    """
    module = sys.modules[package]
    path = os.path.join(os.path.dirname(str(module.__file__)), name)
    content: bytes = module.__spec__.loader.get_data(path)  # type: ignore[union-attr]
    return content


def _modules_of(package: str) -> list[str]:
    """Names of the modules in a package."""
    (folder,) = sys.modules[package].__path__
    try:
        files = os.listdir(folder)
    except OSError:  # it is in a zip file; `pkgutil` would do for both, but is slow to import
        import pkgutil  # noqa: PLC0415

        return sorted(name for _, name, _ in pkgutil.iter_modules([folder]))
    return sorted(
        {f.partition(".")[0] for f in files if f.endswith((".py", ".pyc"))} - {"__init__"}
    )
