"""Modules that Python imports under another package's name."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType


class _AliasLoader(Loader):
    """Answers an import with a module that has another name."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target)
        # The import system writes the alias's specification into the module; exec_module undoes it.
        self._own = {
            name: getattr(module, name, None)
            for name in ("__spec__", "__loader__", "__package__", "__path__")
        }
        return module

    def exec_module(self, module: ModuleType) -> None:
        for name, value in self._own.items():
            if value is None:
                module.__dict__.pop(name, None)
            else:
                setattr(module, name, value)


class AliasFinder(MetaPathFinder):
    """Finds modules under the names of another package.

    Parameters
    ----------
    targets : mapping of str to str
        Modules that answer ("armpy_compat.onnxruntime.capi"), by the imported name
        ("onnxruntime.capi").
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self.targets = dict(targets)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Describe a module of the table; others are left to the finders after this one."""
        alias = self.targets.get(fullname)
        if alias is None:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in self.targets)
        return importlib.machinery.ModuleSpec(fullname, _AliasLoader(alias), is_package=is_package)


def install_aliases(targets: Mapping[str, str]) -> None:
    """Answer imports of some names with other modules, from now on in this process.

    Parameters
    ----------
    targets : mapping of str to str
        See `AliasFinder`.

    Raises
    ------
    ImportError
        If one of the names is already imported from elsewhere, as programs would use both.
    """
    for name, target in targets.items():
        loaded = sys.modules.get(name)
        if loaded is not None and loaded.__name__ != target:
            file = getattr(loaded, "__file__", None) or "memory"
            raise ImportError(
                f"{name} is already imported from {file}, so that armpy cannot take its place."
                " Call this before the program's first import of it.",
                name=name,
            )
    if not any(
        isinstance(finder, AliasFinder) and finder.targets == targets for finder in sys.meta_path
    ):
        sys.meta_path.insert(0, AliasFinder(targets))
