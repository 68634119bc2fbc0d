"""Reads pinned code once: the bytes that are hashed are the bytes that run."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import spec_from_file_location
from pathlib import PurePosixPath
from types import MappingProxyType, ModuleType

from armpy.plugins.discovery.candidate import Candidate, CandidateKind, RejectionError
from armpy.plugins.discovery.directories import module_files
from armpy.plugins.discovery.references import top_module
from armpy.plugins.trust.digests import digest_line, distribution_files, read_regular

_LIBRARY_MARKS = (".so", ".dylib", ".dll", ".pyd")
"""What the name of a shared library has in it; versions may follow."""

_INIT = "__init__"
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


class SnapshotSourceLoader(SourceFileLoader):
    """Loads a module from its source alone; bytecode beside it is neither trusted nor written.

    Parameters
    ----------
    fullname, path : str
    contents : mapping of str to bytes, optional
        Files that were read before, by path; others are read when they are wanted.
    """

    def __init__(self, fullname: str, path: str, contents: Mapping[str, bytes] = _NOTHING) -> None:
        super().__init__(fullname, path)
        self._contents = contents

    def path_stats(self, path: str) -> dict[str, float]:
        """Say that nothing is known about the age of the source, so that no cache is used."""
        raise OSError(f"{path}: bytecode is not used")

    def get_data(self, path: str) -> bytes:
        """What a file held when it was read; raises OSError if it is no regular file."""
        known = self._contents.get(path)
        return read_regular(path) if known is None else known


class Snapshot:
    """The files of a module, package or distribution, read once.

    Parameters
    ----------
    files : iterable of (str, str)
        Names, relative to `root` and with slashes, and full paths.
    is_single : bool
        Whether it is a module in one file, whose digest is that of its contents.
    root : str, optional
        Name of the package; a module in one file and a distribution have none.

    Attributes
    ----------
    digest : str
        As `armpy.plugins.trust.digests` defines it.

    Raises
    ------
    OSError
        If a file cannot be read.
    RejectionError
        If a file's name cannot be pinned.

    Notes
    -----
    Only code is kept: sources and shared libraries. Other files are hashed and let go.
    """

    def __init__(
        self, files: Iterable[tuple[str, str]], *, is_single: bool = False, root: str = ""
    ) -> None:
        self._is_single = is_single
        self._root = root
        self._paths: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}
        lines = hashlib.sha256()
        digest = ""
        for name, path in files:
            # Read once: between two readings somebody could put another file there.
            content = read_regular(path)
            digest = hashlib.sha256(content).hexdigest()
            lines.update(digest_line(digest, name))
            if is_single or _is_code(name):
                self._paths[name] = path
                self._contents[path] = content
        self.digest = digest if is_single else lines.hexdigest()

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """The file of each module, by its dotted name relative to the root."""
        if self._is_single:
            return dict.fromkeys([""], next(iter(self._paths)))
        found: dict[str, str] = {}
        # As Python does it: a package goes before an extension, that before a source.
        suffixes = [*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES]
        for ending in [*(f"/{_INIT}{suffix}" for suffix in suffixes), *suffixes]:
            for name in self._paths:
                stem = f"/{name}".removesuffix(ending)
                # With a dot left over it is for another Python, or cannot be imported.
                if stem != f"/{name}" and "." not in stem:
                    found.setdefault(stem.strip("/").replace("/", "."), name)
        return found

    def spec(self, fullname: str, module: str) -> ModuleSpec | None:
        """How to import a module from what was read; None if it is not there.

        Parameters
        ----------
        fullname : str
            In ``sys.modules``.
        module : str
            A key of `modules`.
        """
        name = self.modules.get(module)
        if name is None:
            return self._folder_spec(fullname, module)
        path = self._paths[name]
        is_package = PurePosixPath(name).name.partition(".")[0] == _INIT
        places = [os.path.dirname(path)] if is_package else None
        loader: SourceFileLoader | ExtensionFileLoader
        if _is_source(name):
            loader = SnapshotSourceLoader(fullname, path, self._contents)
        else:
            # The system loads libraries by path, so that the bytes have to be in a file again.
            path = os.path.join(self._libraries, *PurePosixPath(name).parts)
            loader = ExtensionFileLoader(fullname, path)
        return spec_from_file_location(
            fullname, path, loader=loader, submodule_search_locations=places
        )

    def _folder_spec(self, fullname: str, module: str) -> ModuleSpec | None:
        """How to import a folder that has modules and no ``__init__``; None if there is none."""
        parts = module.split(".")
        inside = next((n for n in self.modules if n.startswith(f"{module}.")), None)
        if inside is None or not module:
            return None
        below = len(PurePosixPath(self.modules[inside]).parts) - len(parts)
        spec = ModuleSpec(fullname, None, is_package=True)
        folder = self._paths[self.modules[inside]]
        for _ in range(below):
            folder = os.path.dirname(folder)
        spec.submodule_search_locations = [folder]
        return spec

    def use_libraries_beside(self, *others: Snapshot) -> None:
        """Have shared libraries loaded from copies that lie to those of others as they do.

        Notes
        -----
        So they find each other by a ``RUNPATH`` with ``$ORIGIN``. What was copied once serves all
        snapshots of the same bytes: the interpreter never unloads a library, and the system
        loads each file once.
        """
        # Most modules are sources alone, and need no folder.
        if not self.has_libraries:
            return
        # The digest of a module in one file says nothing about its name.
        key = tuple((s.digest, s._root, *s._paths) for s in (self, *others))
        if key not in _folders:
            folder = _new_folder()
            for snapshot in (self, *others):
                snapshot._copy_to(folder)
            _folders[key] = folder
        self._libraries = os.path.join(_folders[key], self._root)

    def _copy_to(self, folder: str) -> None:
        """Write each shared library into a folder, placed as it is around `root`."""
        for name, path in self._paths.items():
            if not _is_source(name):
                copy = os.path.join(folder, self._root, *PurePosixPath(name).parts)
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(copy, "wb") as file:
                    file.write(self._contents[path])

    @property
    def has_libraries(self) -> bool:
        """Whether there are shared libraries among the files."""
        return any(not _is_source(name) for name in self._paths)

    @cached_property
    def _libraries(self) -> str:
        """The folder with a copy of each shared library."""
        # This puts the folder in the place of this property.
        self.use_libraries_beside()
        return self._libraries


# For the process, as what was mapped once stays mapped.
_folders: dict[tuple[tuple[str, ...], ...], str] = {}
"""Where libraries were copied to, by the digests and names of what they belong to."""


def _new_folder() -> str:
    """A folder that only this process's user can look into, until the process ends."""
    folder = tempfile.mkdtemp(prefix="armpy-pinned-")
    # Not before the end: libraries may load others from beside them at any time.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass(frozen=True, slots=True)
class PinnedCode:
    """Code of a candidate that may be imported; None for what has no pin.

    Parameters
    ----------
    module : Snapshot, optional
        The module, package or distribution.
    common : Snapshot, optional
        The vendor's common code beside a directory's module.
    """

    module: Snapshot | None = None
    common: Snapshot | None = None


NOT_PINNED = PinnedCode()


class SnapshotFinder:
    """Finds modules in a snapshot, and nowhere else.

    Parameters
    ----------
    snapshot : Snapshot
    package : str, optional
        Private name of the module or package that the snapshot is; a distribution has none.

    Attributes
    ----------
    roots : set of str
        The outermost modules and packages.

    Notes
    -----
    It answers for the snapshot's outermost modules and packages and all that is in them. A part
    that the snapshot does not have is not found, even if there is a file of its name.
    """

    def __init__(self, snapshot: Snapshot, package: str = "") -> None:
        self.snapshot = snapshot
        self.package = package
        names = snapshot.modules
        self.roots = {package} if package else {name for name in names if not _inside(name, names)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module of the snapshot; None for modules of others.

        Raises
        ------
        ModuleNotFoundError
            For a part that the pin does not cover.
        """
        if fullname not in self.roots and not _inside(fullname, self.roots):
            return None
        module = fullname
        if self.package:
            module = fullname.removeprefix(self.package).removeprefix(".")
        spec = self.snapshot.spec(fullname, module)
        if spec is None:
            # Not None, or the next finder would import a file of this name that nobody has hashed.
            raise ModuleNotFoundError(
                f"No module named '{fullname}' is among the files that its pin covers",
                name=fullname,
            )
        return spec


def take_snapshot(candidate: Candidate) -> Snapshot:
    """Read the files that a candidate's pin covers; raises OSError or RejectionError."""
    if candidate.kind is CandidateKind.DIRECTORY:
        return snapshot_of(candidate.path, candidate.entry)
    return Snapshot(distribution_files(candidate.distribution))


def snapshot_of(path: str, entry: str = "") -> Snapshot:
    """Read a module or package.

    Parameters
    ----------
    path : str
        Of the file or directory.
    entry : str, optional
        A link to it, which says what kind of file it is.
    """
    name = os.path.basename(entry or path)
    if os.path.isdir(path):
        return Snapshot(module_files(path), root=name)
    return Snapshot([(name, path)], is_single=True)


def serve_distribution(snapshot: Snapshot, candidate: Candidate) -> None:
    """Have a pinned distribution's modules imported from a snapshot, now and later.

    Raises
    ------
    RejectionError
        If one of them was imported before in another way.
    """
    finder = SnapshotFinder(snapshot)
    # Another registry may have served the same bytes before.
    same = [f for f in sys.meta_path if _serves(f, snapshot.digest)]
    top = top_module(candidate.name)
    loaded = [name for name in sys.modules if name in finder.roots or _inside(name, finder.roots)]
    # What is in `sys.modules` is not imported again, so the pin would say nothing about it.
    if loaded and not same:
        raise RejectionError(
            f"its module '{top}' was imported before its pin was checked. "
            "Make the Runtime before anything of a pinned distribution is imported"
        )
    if not same:
        # In front, or Python's own finder would read the files that are there now. It stays,
        # as parts may be imported at any time.
        sys.meta_path.insert(0, finder)


def _serves(finder: object, digest: str) -> bool:
    """Whether a finder on ``sys.meta_path`` gives out the snapshot of a digest."""
    return isinstance(finder, SnapshotFinder) and finder.snapshot.digest == digest


def _inside(name: str, packages: Iterable[str]) -> bool:
    """Whether a dotted name is one of a part of some packages."""
    held = packages if isinstance(packages, (set, Mapping)) else set(packages)
    while "." in name:
        name = name.rpartition(".")[0]
        if name in held:
            return True
    return False


def _is_source(name: str) -> bool:
    """Whether a file is a Python source, by its name."""
    return PurePosixPath(name).suffix in SOURCE_SUFFIXES


def _is_code(name: str) -> bool:
    """Whether a file is a Python source or a shared library, by its name."""
    return _is_source(name) or any(m in PurePosixPath(name).suffixes for m in _LIBRARY_MARKS)
