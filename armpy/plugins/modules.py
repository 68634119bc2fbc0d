"""Imports backend modules from directories, under private names.

A module's private name is that of a group and its own, ``_armpy_dynamic_0123_1.Arm_Npu_backend``.
A group has the modules of one vendor in one directory, and the common code that they share there.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import itertools
import os
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
from armpy.plugins.checks import OpenedCandidate, version_text, why_incompatible
from armpy.plugins.discovery.candidate import Candidate, RejectionError
from armpy.plugins.discovery.directories import init_file, is_common, is_library, module_name
from armpy.plugins.discovery.entry_point_cache import LIBRARIES_GROUP, installed
from armpy.plugins.extensions import install_line
from armpy.plugins.libraries import open_with
from armpy.plugins.library_check import C_INTERFACE, check_library
from armpy.plugins.proxy.guarded_call import describe
from armpy.plugins.trust.pinned_code import (
    NOT_PINNED,
    PinnedCode,
    SnapshotFinder,
    SnapshotSourceLoader,
    library_copy,
)

PRIVATE_PREFIX = "_armpy_dynamic_"
"""Prefix of the names of directories' modules in ``sys.modules``."""

# Two registries may open one path, each with a module of its own.
_counter = itertools.count(1)


def group_name(path: str) -> str:
    """A name for a group of modules that no other has, in this registry or another."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{PRIVATE_PREFIX}{digest}_{next(_counter)}"


def private_name(
    candidate: Candidate,
    group: str = "",  # from `group_name`; a new one by default
) -> str:
    """A name for a directory's module that no other has.

    A library is called as its own file is and not as a link to it, if that is a module's name: its
    entry point ``PyInit_<name>`` is called so.
    """
    own = os.path.basename(candidate.path)
    linked = os.path.basename(candidate.entry or candidate.path)
    named = own if is_library(own) and is_library(linked) else linked
    return f"{group or group_name(candidate.path)}.{module_name(named)}"


def group_of(name: str) -> str:
    """The group in a module's private name."""
    return name.partition(".")[0]


def open_module(
    candidate: Candidate,
    name: str,  # from `private_name`
    pinned: PinnedCode = NOT_PINNED,  # code to import instead of the present one
    core: str = BACKEND_API_VERSION,  # API version that the module's has to fit
) -> OpenedCandidate:
    """Import a directory's module or package and read its three entry points.

    Raises RejectionError if an entry point is missing or wrong, or the version does not fit;
    BaseException (whatever the module raises).

    Afterwards ``sys.path`` is unchanged, and if anything was raised, ``sys.modules`` has
    nothing of the module.

    References
    ----------
    Arm NN DynamicBackend.
    """
    path = candidate.path
    if _FINDER not in sys.meta_path:
        # For good, as parts may be imported at any time. In front: Python's own finder would find
        # parts of packages too, with their bytecode.
        sys.meta_path.insert(0, _FINDER)
    with _forgotten_on_error(name), _kept_sys_path():
        named_library = is_library(os.path.basename(candidate.entry or path))
        is_file = named_library and os.path.isfile(path)
        if is_file and check_library(path, name.rpartition(".")[2]) == C_INTERFACE:
            return _open_c_library(path, pinned)
        # First, as a module inside a package is only imported once the package is there.
        _open_group(name, candidate.common, pinned)
        module = _import(path, name, pinned, named_library)
        entries = [_entry_point(module, e) for e in _ENTRY_POINTS]
        get_backend_id, get_version, factory = entries
        backend_id = get_backend_id()
        if not isinstance(backend_id, str):
            raise RejectionError(f"its get_backend_id returned {describe(backend_id)}, not a str")
        version = get_version()
        # Before the factory is called: code for another contract might do anything then.
        if reason := why_incompatible(version, core):
            raise RejectionError(reason)

    def make() -> object:
        backend = factory()
        if backend is None:
            raise RejectionError("its backend_factory returned None")
        return backend

    return OpenedCandidate(backend_id, version_text(version), make)


def _open_c_library(
    path: str,
    pinned: PinnedCode,  # a library with a pin is loaded from a copy of the bytes that were checked
) -> OpenedCandidate:
    """Open a library that exports `C_INTERFACE`.

    Raises RejectionError if no installed package opens such libraries, or it has not one backend;
    ArmpyError (what the package raises).
    """
    entries = (entry for entry in installed().entry_points if entry.group == LIBRARIES_GROUP)
    opener = next((entry.value for entry in entries if entry.name == C_INTERFACE), "")
    if not opener:
        raise RejectionError(
            f"its library {path} is a backend in C, and no installed package opens it. Run: "
            f"{install_line('armpy-native')}"
        )
    factories = open_with(
        opener, path if pinned.module is None else library_copy(pinned.module, path)
    )
    if len(factories) != 1:
        raise RejectionError(f"its library {path} has {len(factories)} backends. Expected one")
    ((backend_id, factory),) = factories.items()
    # The version of the contract is the package's, which wraps the library.
    return OpenedCandidate(backend_id, BACKEND_API_VERSION, factory)


def forget_module(name: str) -> None:
    """Remove a private module and its submodules from ``sys.modules``.

    What its group shares goes with the last of the group's modules.
    """
    _forget(name)
    group = group_of(name)
    # A copy of the keys in one step, as other threads import meanwhile.
    parts = {key.split(".")[1] for key in [*sys.modules] if key.startswith(f"{group}.")}
    if all(is_common(part) for part in parts):
        _forget(group)


def _forget(name: str) -> None:
    for places in (_FINDER.pinned, _FINDER.commons):
        for key in [key for key in places if f"{key}.".startswith(f"{name}.")]:
            del places[key]
    for key in [key for key in [*sys.modules] if key == name or key.startswith(f"{name}.")]:
        module = sys.modules.pop(key)
        for location in getattr(module, "__path__", ()):
            sys.path_importer_cache.pop(location, None)


_ENTRY_POINTS = ("get_backend_id", "get_version", "backend_factory")


class _PrivateFinder:
    """Finds private modules and their parts: pinned ones in snapshots, all else by its source."""

    def __init__(self) -> None:
        # By the private name of a module or of common code.
        self.pinned: dict[str, SnapshotFinder] = {}
        # The place of common code that has no pin, by its private name.
        self.commons: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look for a module or a part of one; None for all others."""
        if path is None or not fullname.startswith(PRIVATE_PREFIX):
            return None
        module = ".".join(fullname.split(".")[:2])
        # Before all else: nothing of a pinned module may come from the present files.
        if finder := self.pinned.get(module):
            return finder.find_spec(fullname)
        if place := self.commons.get(fullname):
            return _spec(place, fullname, is_extension=init_file(place).endswith(_EXTENSIONS))
        kinds = (_LibraryLoader, EXTENSION_SUFFIXES), (SnapshotSourceLoader, SOURCE_SUFFIXES)
        # A new finder each time: a kept one answers from its listing, which may be out of date.
        specs = (FileFinder(location, *kinds).find_spec(fullname, target) for location in path)
        return next(filter(None, specs), None)


_mapped: dict[str, tuple[int, ...]] = {}
"""Which file each library was when this process mapped it, by its path."""


class _LibraryLoader(ExtensionFileLoader):
    """Loads a library, unless an older one is in its place.

    The interpreter never unmaps one, and whatever lies at its path later, the system gives the old
    one for the same name.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Map the library."""
        status = os.stat(self.path)
        # Before it is mapped: a file that is put there meanwhile then counts as another one.
        now = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if _mapped.get(self.path, now) != now:
            raise RejectionError(
                f"its library {self.path} was replaced since this process mapped it, and the old "
                "one stays mapped until the process ends. Start another process to use the new one"
            )
        module = super().create_module(spec)
        _mapped[self.path] = now
        return module


_EXTENSIONS = tuple(EXTENSION_SUFFIXES)
_FINDER = _PrivateFinder()


def _open_group(name: str, common: str, pinned: PinnedCode) -> None:
    group = group_of(name)
    if group in sys.modules:
        return
    package = ModuleType(group)
    package.__spec__ = ModuleSpec(group, None, is_package=True)
    # Empty, so that the directory's other modules are not found as parts of it.
    package.__path__ = []
    sys.modules[group] = package
    shared = f"{group}.{os.path.basename(common).partition('.')[0]}"
    if pinned.common is not None:
        _FINDER.pinned[shared] = SnapshotFinder(pinned.common, shared)
    elif common:
        _FINDER.commons[shared] = common


def _import(path: str, name: str, pinned: PinnedCode, is_library: bool) -> ModuleType:
    if pinned.module is not None:
        _FINDER.pinned[name] = SnapshotFinder(pinned.module, name, pinned.common)
        return importlib.import_module(name)
    is_extension = init_file(path).endswith(_EXTENSIONS) if os.path.isdir(path) else is_library
    spec = _spec(path, name, is_extension=is_extension)
    if spec is None or spec.loader is None:  # pragma: no cover - not with a loader that is given
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Before its code runs, as Python does it: a package imports its own parts by this name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _spec(path: str, name: str, *, is_extension: bool) -> ModuleSpec | None:
    file = init_file(path)
    kind = _LibraryLoader if is_extension else SnapshotSourceLoader
    return importlib.util.spec_from_file_location(
        name,
        file,
        loader=kind(name, file),
        submodule_search_locations=None if file == path else [path],
    )


def _entry_point(module: ModuleType, name: str) -> Callable[[], object]:
    try:
        entry: Callable[[], object] = getattr(module, name)
    except AttributeError:
        raise RejectionError(f"it has no {name}()") from None
    if not callable(entry):
        raise RejectionError(f"its {name} is {describe(entry)}, which cannot be called")
    return entry


@contextmanager
def _forgotten_on_error(name: str) -> Iterator[None]:
    """Remove all traces of a module if anything is raised."""
    try:
        yield
    except BaseException:
        forget_module(name)
        raise


@contextmanager
def _kept_sys_path() -> Iterator[None]:
    # With a vendor's folder on it, the application would import the vendor's modules as its own.
    before = list(sys.path)
    try:
        yield
    finally:
        if sys.path != before:
            sys.path[:] = before  # in place: others hold the list
