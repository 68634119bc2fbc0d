"""Imports backend modules from directories, under private names."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
)
from types import ModuleType

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.boundary import describe, exact
from armpy.plugins.candidate import RejectionError
from armpy.plugins.directories import init_file
from armpy.plugins.snapshot import Snapshot, SnapshotFinder, SnapshotSourceLoader
from armpy.plugins.versions import version_text, why_incompatible
from armpy.records import dataclass
from armpy.types import BackendId

PRIVATE_PREFIX = "_armpy_dynamic_"
"""What the names of directories' modules in ``sys.modules`` begin with."""

_counter = itertools.count(1)


@dataclass(frozen=True, slots=True)
class DynamicBackend:
    """A module from a directory whose entry points are there and whose version fits.

    Parameters
    ----------
    private_name : str
        Of the module in ``sys.modules``.
    backend_id : str
        May be empty or ``"Unknown"``; such a backend cannot be registered.
    api_version : str
    factory : callable
        Makes the backend.

    References
    ----------
    Arm NN DynamicBackend.
    """

    private_name: str
    backend_id: BackendId
    api_version: str
    factory: Callable[[], object]

    def create(self) -> object:
        """Make the backend.

        Raises
        ------
        RejectionError
            If the factory returns None.
        """
        backend = self.factory()
        if backend is None:
            raise RejectionError("its backend_factory returned None")
        return backend


def private_name(path: str) -> str:
    """A name for a module that no other has, in this registry or another."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{PRIVATE_PREFIX}{digest}_{next(_counter)}"


def open_module(
    path: str, name: str, core: str = BACKEND_API_VERSION, snapshot: Snapshot | None = None
) -> DynamicBackend:
    """Import a module or package and read its three entry points.

    Parameters
    ----------
    path : str
        Canonical path of a file or a package's directory.
    name : str
        From `private_name`.
    core : str
        API version that the module's has to fit.
    snapshot : Snapshot, optional
        What to import instead of what is there now.

    Raises
    ------
    RejectionError
        If an entry point is missing or wrong, or the version does not fit.
    BaseException
        Whatever the module raises.

    Notes
    -----
    Afterwards ``sys.path`` is what it was, and if anything was raised, ``sys.modules`` has
    nothing of the module.
    """
    with _forgotten_on_error(name), _kept_sys_path():
        module = _import(path, name, snapshot)
        entries = [_entry_point(module, e) for e in _ENTRY_POINTS]
        get_backend_id, get_version, factory = entries
        backend_id = exact(get_backend_id())
        if not isinstance(backend_id, str):
            raise RejectionError(f"its get_backend_id returned {describe(backend_id)}, not a str")
        version = get_version()
        if reason := why_incompatible(version, core):
            raise RejectionError(reason)
        return DynamicBackend(name, backend_id, version_text(version), factory)


def forget_module(name: str) -> None:
    """Remove a private module and its submodules from ``sys.modules``."""
    for finder in [f for f in sys.meta_path if isinstance(f, SnapshotFinder) and f.package == name]:
        sys.meta_path.remove(finder)
    for key in [key for key in [*sys.modules] if key == name or key.startswith(f"{name}.")]:
        module = sys.modules.pop(key)
        for location in getattr(module, "__path__", ()):
            sys.path_importer_cache.pop(location, None)


_ENTRY_POINTS = ("get_backend_id", "get_version", "backend_factory")


class _PartsFinder:
    """Finds the parts of private packages, so that they too are read from their source."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look for a part in its package's directories; None for all other modules."""
        if path is None or not fullname.startswith(PRIVATE_PREFIX):
            return None
        kinds = (ExtensionFileLoader, EXTENSION_SUFFIXES), (SnapshotSourceLoader, SOURCE_SUFFIXES)
        found = (FileFinder(location, *kinds).find_spec(fullname, target) for location in path)
        return next(filter(None, found), None)


_PARTS_FINDER = _PartsFinder()


def _import(path: str, name: str, snapshot: Snapshot | None) -> ModuleType:
    """Import a file or a package's directory under a name."""
    if snapshot is not None:
        sys.meta_path.insert(0, SnapshotFinder(snapshot, name))  # until the module is forgotten
        return importlib.import_module(name)
    if _PARTS_FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _PARTS_FINDER)  # for good: parts may be imported at any time
    file = init_file(path)
    spec = importlib.util.spec_from_file_location(
        name,
        file,
        loader=SnapshotSourceLoader(name, file),
        submodule_search_locations=None if file == path else [path],
    )
    if spec is None or spec.loader is None:  # pragma: no cover - not with a loader that is given
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _entry_point(module: ModuleType, name: str) -> Callable[[], object]:
    """One of a module's entry points."""
    try:
        entry: Callable[[], object] = getattr(module, name)
    except AttributeError:
        raise RejectionError(f"it has no {name}()") from None
    if not callable(entry):
        raise RejectionError(f"its {name} is {describe(entry)}, which cannot be called")
    return entry


@contextmanager
def _forgotten_on_error(name: str) -> Iterator[None]:
    """Leave nothing of a module behind if anything is raised."""
    try:
        yield
    except BaseException:
        forget_module(name)
        raise


@contextmanager
def _kept_sys_path() -> Iterator[None]:
    """Undo what a module does to ``sys.path`` while it is imported."""
    before = list(sys.path)
    try:
        yield
    finally:
        if sys.path != before:
            sys.path[:] = before
