"""Lazy exports of packages: a name's module is imported when the name is first asked for.

A process pays only for its own use: a model of three kinds of layers needs the definitions of three
operations. What a package exports stands once, in the stub that type checkers read in its place
(the form of the lazy-loader package): ``__init__.pyi`` has a line for each name, or one for all
that a module has in its ``__all__``::

    from armpy.model.model import Model as Model
    from armpy.ops.convolution import *

and ``__init__.py`` has the functions that modules may have for this (PEP 562)::

    __getattr__, __dir__ = offer(__name__)

`ModuleTables` are registries without an index. What a module has of a kind of thing (the converters
of some operators) stands in a table of its own, and nowhere is written which module that is. So the
modules' texts are looked into, which takes a fiftieth of the time that importing them takes. A text
only says which modules to import; their contents at that time count.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any


def offer(
    package: str,  # its name
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Lazy ``__getattr__`` and ``__dir__`` of a package that exports what its stub says.

    ``__all__`` is among what can be asked for, and so are the package's modules. ``dir`` lists
    the stub's exports, not the modules and helpers that happen to be loaded.
    """
    contents = vars(sys.modules[package])
    exports: _Exports | None = None

    def known() -> _Exports:
        """Return the contents of the stub, read at the first use."""
        nonlocal exports
        exports = exports or _Exports(package)
        return exports

    def find(name: str) -> object:
        """Import the requested name; from then on it is an attribute."""
        part = sorted(known().names()) if name == "__all__" else known().find(name)
        contents[name] = part
        return part

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
        # Without regular expressions, which every process would compile.
        for statement in f"\n{stub}".split("\nfrom ")[1:]:
            source, _, rest = statement.partition(" import ")
            end = ")" if rest.startswith("(") else "\n"
            names = rest.removeprefix("(").partition(end)[0]
            if names.startswith("*"):
                self._families.append(source)
            words = [name.split() for name in names.split(",")]
            self._sources.update({name[2]: source for name in words if len(name) > 2})

    @cached_property
    def _tables(self) -> ModuleTables:
        """Return the exports of all families."""
        modules = [family.removeprefix(f"{self._package}.") for family in self._families]
        return ModuleTables(self._package, "__all__", modules)

    def names(self) -> set[str]:
        families = self._tables.modules() if self._families else ()
        return {*self._sources, *(name for f in families for name in f.__all__)}

    def find(self, name: str) -> object:
        """Import what a name stands for."""
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
        if self._families:
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


class ModuleTables:
    """Tables of one name in a package's modules.

    A module without a text is imported to see: a package may hold compiled files alone.
    """

    def __init__(
        self,
        package: str,
        # What each module calls its table. A table begins a line and ends before an empty one.
        table: str,
        # Names of modules in the package; all of them by default.
        modules: Iterable[str] | None = None,
    ) -> None:
        self._package = package
        self._table = table
        self._modules = modules
        self._entries: dict[object, Any] = {}

    def entry(self, key: object, word: str) -> Any:  # Any: whatever the tables hold
        """Return the entry of a key in the one table that has it; None if none has.

        Every table must be a mapping. Results are stored.

        Parameters
        ----------
        word : str
            Text of the word in the table, see `mentioning`.
        """
        if key not in self._entries:
            tables = (getattr(module, self._table) for module in self.mentioning(word))
            self._entries[key] = next((table[key] for table in tables if key in table), None)
        return self._entries[key]

    def mentioning(
        self,
        word: str,  # a name, or part of a key: letters, digits and underscores
    ) -> Iterator[ModuleType]:
        """Import modules in whose table a word stands."""
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
        imported = import_module(f"{self._package}.{module}")
        if hasattr(imported, self._table):
            yield imported

    @cached_property
    def _words(self) -> dict[str, frozenset[bytes] | None]:
        """Return the table of each module that has one; None where that cannot be seen."""
        # Its folder is known of an imported package only.
        import_module(self._package)
        names = _modules_of(self._package) if self._modules is None else sorted(self._modules)
        start = b"\n" + self._table.encode()
        words: dict[str, frozenset[bytes] | None] = {}
        for name in names:
            try:
                text = package_file(self._package, f"{name}.py")
            except OSError:
                words[name] = None
                continue
            if (position := text.find(start)) >= 0:
                table = text[position:].partition(b"\n\n")[0]
                words[name] = frozenset(re.findall(rb"\w+", table))
        return words


def package_file(package: str, name: str) -> bytes:
    """The bytes of a file in an imported package, be it a folder or a zip file."""
    module = sys.modules[package]
    path = os.path.join(os.path.dirname(str(module.__file__)), name)
    content: bytes = module.__spec__.loader.get_data(path)  # type: ignore[union-attr]
    return content


def _modules_of(package: str) -> list[str]:
    (folder,) = sys.modules[package].__path__
    try:
        files = os.listdir(folder)
    except OSError:  # it is in a zip file; `pkgutil` would do for both, but is slow to import
        import pkgutil  # noqa: PLC0415

        return sorted(name for _, name, _ in pkgutil.iter_modules([folder]))
    return sorted(
        {f.partition(".")[0] for f in files if f.endswith((".py", ".pyc"))} - {"__init__"}
    )
