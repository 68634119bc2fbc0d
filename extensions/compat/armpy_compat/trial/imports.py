"""Imports of engines' modules: what to do after them, and names that are missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from armpy_compat.trial.engine_calls import ENGINES, engine_module

_OWN = "armpy_compat."
_TOO_LARGE = "tensorflow"
"""An engine of whose modules only those with interpreters are watched."""
_ARMPY = ("armpy", "armpy_compat")
"""Packages whose functions call backends; they stand between the program and what these ask for."""
_TRIAL, _STARTER = "armpy_compat.trial.", "armpy_compat.program"
"""Modules of these that watch imports, and the one that runs the program."""


class ImportWatcher(MetaPathFinder):
    """Acts on engines' modules after they are imported; the other finders find them.

    Parameters
    ----------
    after : mapping of str to callable
        What to do with a module, by its name.
    missing : callable
        Called with a name that a program asks an engine for in vain. What armpy and its backends
        ask for, such as another package with the same engine, is not the program's.
    """

    def __init__(
        self, after: Mapping[str, Callable[[ModuleType], None]], missing: Callable[[str], None]
    ) -> None:
        self._after, self._missing = after, missing
        self.imported: set[str] = set()
        """Engines that were imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Describe a module of an engine as the other finders do; others are left to them."""
        engine = engine_module(fullname).partition(".")[0]
        if engine not in ENGINES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                break
        else:
            self._note(engine_module(fullname))
            return None
        self.imported.add(engine)
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            self._act_after(spec, is_watched=engine != _TOO_LARGE)
        return spec

    def _note(self, name: str) -> None:
        """Note a missing name, if the program or one of its libraries asks for it."""
        if not _is_asked_by_armpy():
            self._missing(name)

    def _act_after(self, spec: ModuleSpec, *, is_watched: bool) -> None:
        """Have the loader of a module act when the module has been executed."""
        loader, act = spec.loader, self._after.get(spec.name)
        assert loader is not None
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # Of an alias, the module's own import has done it.
            if module.__name__ == spec.name:
                if is_watched:
                    _note_missing(module, self._note)
                if act is not None:
                    act(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]


def _is_asked_by_armpy() -> bool:
    """Whether armpy, not the program, runs the code that asks: the nearest caller of both."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name in ("__main__", _STARTER):
            return False
        if name.partition(".")[0] in _ARMPY and not name.startswith(_TRIAL):
            return True
        frame = frame.f_back
    return False


def _note_missing(module: ModuleType, missing: Callable[[str], None]) -> None:
    """Note public names that a module, or an object of its classes, lacks when it is asked."""
    place, own = engine_module(module.__name__), module.__dict__.get("__getattr__")

    def lacks(name: str) -> object:
        try:
            if own is not None:
                return own(name)
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        except AttributeError:
            if not name.startswith("_"):
                missing(f"{place}.{name}")
            raise

    module.__dict__["__getattr__"] = lacks
    if not str(getattr(module, "__file__", "")).endswith(".py"):
        return  # classes of native modules stay as they are
    for value in [*module.__dict__.values()]:
        is_own = isinstance(value, type) and value.__module__ == module.__name__
        if is_own and not value.__name__.startswith("_") and not hasattr(value, "__getattr__"):
            _note_missing_attributes(value, missing)


def _note_missing_attributes(owner: type, missing: Callable[[str], None]) -> None:
    def lacks(self: object, name: str) -> object:
        if not name.startswith("_"):
            missing(f"{type(self).__name__}.{name}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    owner.__getattr__ = lacks  # type: ignore[attr-defined]


def is_importable(name: str) -> bool:
    """Whether an engine's module is imported, or a name is in an imported one."""
    own_names = {engine_module(own): own for own in sys.modules if own.startswith(_OWN)}
    module, _, attribute = name.rpartition(".")
    imported = sys.modules.get(own_names.get(module, module))
    return (
        name in own_names
        or name in sys.modules
        or (imported is not None and attribute in vars(imported))
    )
