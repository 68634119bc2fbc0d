"""A copy of CpuRef, and of the arithmetic it uses, with one module changed."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import armpy_reference
from armpy_reference.factory import snake_case

from armpy import ops
from armpy.backend import IBackendInternal
from armpy.core import numerics
from armpy.ops import Operation

ORIGINAL = "armpy_reference"
TWIN = "armpy_reference_twin"
TWIN_ID = "CpuTwin"

ARITHMETIC = "armpy.core.numerics"
"""Becomes a part of the twin, so that it can be changed for that alone."""

NOT_MUTATED = ("", "backend", "factory", "numerics", "workloads")
"""Modules that compute nothing."""


_PACKAGES = ("", "numerics", "workloads")


class Sources:
    """The texts of CpuRef's modules and of `armpy.core.numerics`, and what depends on each.

    Attributes
    ----------
    texts : dict of str to str
        By name in the package; the package itself is ``""``, and arithmetic is ``numerics``.
    """

    def __init__(self) -> None:
        # The package itself offers its modules by a file, which the twin does not have.
        self.texts = _texts(armpy_reference, "") | _texts(numerics, "numerics") | {"numerics": ""}
        self._code = {name: self._compiled(name, text) for name, text in self.texts.items()}
        self._imports = {name: _imported(text) for name, text in self.texts.items()}

    def operations_of(self, module: str) -> frozenset[str]:
        """Names of the operations whose workloads need a module, directly or not."""
        return frozenset(
            kind.__name__
            for kind in _operation_kinds()
            if module in self._needed(f"workloads.{snake_case(kind.__name__)}")
        )

    def twin(self, changed: Mapping[str, str]) -> IBackendInternal:
        """Import the copy and make its backend.

        Parameters
        ----------
        changed : mapping of str to str
            Texts that stand for those of some modules.

        Notes
        -----
        A twin that was imported before is forgotten.
        """
        for name in [name for name in sys.modules if name.partition(".")[0] == TWIN]:
            del sys.modules[name]
        code = self._code | {name: self._compiled(name, text) for name, text in changed.items()}
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        sys.meta_path.insert(0, _Finder(code))
        backend: Any = importlib.import_module(f"{TWIN}.backend")  # Any: made just now

        class Twin(backend.ReferenceBackend):  # type: ignore[misc]  # as above
            """CpuRef under another id."""

            def get_id(self) -> str:
                """The twin's."""
                return TWIN_ID

        twin: IBackendInternal = Twin()
        return twin

    def _needed(self, module: str) -> frozenset[str]:
        """A module and all that it imports, directly or not; nothing if there is no such one."""
        modules: set[str] = set()
        pending = [module] if module in self._imports else []
        while pending:
            name = pending.pop()
            if name not in modules:
                modules.add(name)
                pending.extend(self._imports[name] & self._imports.keys())
        return frozenset(modules)

    @staticmethod
    def _compiled(name: str, text: str) -> CodeType:
        """Code of a module of the twin."""
        return compile(text.replace(ORIGINAL, TWIN), f"<{TWIN}.{name}>", "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the twin's modules from code in memory."""

    def __init__(self, code: Mapping[str, CodeType]) -> None:
        self._code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A specification for what belongs to the twin."""
        package, _, name = fullname.partition(".")
        if package != TWIN or name not in self._code:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=name in _PACKAGES)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """A module like any other."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        exec(self._code[module.__name__.partition(".")[2]], module.__dict__)


def _texts(package: ModuleType, prefix: str) -> dict[str, str]:
    """Texts of a package's modules by name; ``workloads/resize.py`` is ``workloads.resize``."""
    folder, texts = Path(str(package.__file__)).parent, {}
    for path in sorted(folder.rglob("*.py")):
        parts = (prefix, *path.relative_to(folder).with_suffix("").parts)
        name = ".".join(part for part in parts if part not in ("", "__init__"))
        text = path.read_text(encoding="utf-8")
        texts[name] = text.replace(ARITHMETIC, f"{ORIGINAL}.numerics")
    return texts


def _imported(text: str) -> frozenset[str]:
    """Modules of the package that a module imports, and names imported from the package."""
    modules = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, name = node.module.partition(".")
            if package == ORIGINAL:
                if name not in _PACKAGES:
                    modules.add(name)
                else:  # of which modules are imported
                    modules.update(f"{name}.{alias.name}".lstrip(".") for alias in node.names)
    return frozenset(modules)


def _operation_kinds() -> Iterator[type[Operation]]:
    """Every operation that there is."""
    for name in dir(ops):
        kind = getattr(ops, name)
        if isinstance(kind, type) and issubclass(kind, Operation):
            yield kind
