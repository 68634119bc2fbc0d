"""Imports pinned code from the bytes that were hashed."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path, PurePosixPath
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from armpy.plugins.discovery.candidate import Candidate, CandidateKind, RejectionError
from armpy.plugins.discovery.module_files import (
    Snapshot,
    distribution_snapshot,
    is_source,
    module_snapshot,
    read_regular,
)
from armpy.plugins.discovery.references import find_top_module, top_module

_NOTHING: Mapping[str, bytes] = MappingProxyType({})


class PinnedCode(NamedTuple):
    """Code of a candidate that may be imported; None for what has no pin."""

    # The module, package or distribution.
    module: Snapshot | None = None
    # The vendor's common code beside a directory's module.
    common: Snapshot | None = None


NOT_PINNED = PinnedCode()


def read_pinned(candidate: Candidate) -> PinnedCode:
    """Read the files that a candidate's pins cover, and check them against the pins.

    Raises RejectionError if the files are others, or the module that is wanted is not among them;
    OSError if they cannot be read.
    """
    module = common = None
    if candidate.pin and candidate.kind is CandidateKind.DIRECTORY:
        module = module_snapshot(candidate.path, candidate.entry)
        _check_digest("its SHA-256", module, candidate.pin)
    elif candidate.pin:
        module = distribution_snapshot(candidate.distribution)
        _check_digest("its SHA-256", module, candidate.pin)
        if candidate.kind is CandidateKind.LIBRARY:
            if candidate.path not in map(os.path.realpath, module.paths.values()):
                raise RejectionError(f"its library {candidate.path} is not among its pinned files")
        else:
            _check_covered(candidate, module)
    if candidate.common_pin:
        common = module_snapshot(os.path.realpath(candidate.common), candidate.common)
        subject = f"the SHA-256 of {candidate.common}, the common code beside it,"
        _check_digest(subject, common, candidate.common_pin)
    return PinnedCode(module, common)


def _check_digest(subject: str, snapshot: Snapshot, pin: str) -> None:
    if snapshot.digest != pin:
        raise RejectionError(f"{subject} is {snapshot.digest}, but the trust file pins {pin}")


def _check_covered(candidate: Candidate, snapshot: Snapshot) -> None:
    # Another module of the same name may come first on `sys.path`.
    spec = find_top_module(candidate.name)
    origin = (spec.origin if spec else None) or "in no file"
    if os.path.realpath(origin) not in map(os.path.realpath, snapshot.paths.values()):
        raise RejectionError(
            f"its module '{top_module(candidate.name)}' is {origin}, which the pin of its "
            "distribution does not cover. An editable installation cannot be pinned"
        )


class SnapshotSourceLoader(SourceFileLoader):
    """Loads a module from its source alone; bytecode beside it is neither trusted nor written.

    Files whose contents are not given, by path, are read when they are wanted.
    """

    def __init__(self, fullname: str, path: str, contents: Mapping[str, bytes] = _NOTHING) -> None:
        super().__init__(fullname, path)
        self._contents = contents

    def path_stats(self, path: str) -> dict[str, float]:
        """Say that nothing is known about the age of the source, so that no cache is used."""
        raise OSError(f"{path}: bytecode is not used")

    def get_data(self, path: str) -> bytes:
        """Contents of a file when it was read; raises OSError if it is not a regular file."""
        known = self._contents.get(path)
        return read_regular(path) if known is None else known


class SnapshotFinder:
    """Finds modules in a snapshot, and nowhere else.

    It answers for the snapshot's outermost modules and packages and all that is in them. A part
    that the snapshot does not have is not found, even if there is a file of its name.
    """

    def __init__(
        self, snapshot: Snapshot, package: str = "", common: Snapshot | None = None
    ) -> None:
        self.snapshot = snapshot
        # Private name of the module or package that the snapshot is; a distribution has none.
        self.package = package
        # The vendor's common code. Copies of shared libraries lie to its copies as the originals do
        # to each other, so that they find each other by a ``RUNPATH`` with ``$ORIGIN``.
        self._common = common
        names = snapshot.modules
        self._roots = {package} if package else {n for n in names if not _is_part(n, names)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the snapshot; None for modules of others.

        Raises ModuleNotFoundError for a part that the pin does not cover.
        """
        if not self.covers(fullname):
            return None
        module = fullname.removeprefix(self.package).removeprefix(".")
        files = self.snapshot.modules
        if module in files:
            return self._file_spec(fullname, files[module])
        inside = next((file for name, file in files.items() if name.startswith(f"{module}.")), None)
        if inside is None:
            # Not None, or the next finder would import a file of this name that was not hashed.
            raise ModuleNotFoundError(
                f"No module named '{fullname}' is among the files that its pin covers",
                name=fullname,
            )
        # A folder that has modules and no ``__init__``.
        depth = len(PurePosixPath(inside).parts) - len(module.split("."))
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [
            str(Path(self.snapshot.paths[inside]).parents[depth - 1])
        ]
        return spec

    def covers(self, fullname: str) -> bool:
        """Return whether a module is one of the outermost ones, or a part of one, by its name."""
        return fullname in self._roots or _is_part(fullname, self._roots)

    def _file_spec(self, fullname: str, name: str) -> ModuleSpec | None:
        path = self.snapshot.paths[name]
        is_package = PurePosixPath(name).name.startswith("__init__.")
        places = [os.path.dirname(path)] if is_package else None
        loader: SourceFileLoader | ExtensionFileLoader
        if is_source(name):
            loader = SnapshotSourceLoader(fullname, path, self.snapshot.contents)
        else:
            # The system loads libraries by path, so that the bytes have to be in a file again.
            folder = _library_folder(self.snapshot, *filter(None, [self._common]))
            path = os.path.join(folder, self.snapshot.root, *PurePosixPath(name).parts)
            loader = ExtensionFileLoader(fullname, path)
        return spec_from_file_location(
            fullname, path, loader=loader, submodule_search_locations=places
        )


# For the process: the interpreter never unloads a library, and the system loads each file once.
_folders: dict[tuple[tuple[str, ...], ...], str] = {}
"""Folders of copied libraries by the digests and names of the snapshots that they belong to."""


def library_copy(snapshot: Snapshot, path: str) -> str:
    """Write a library's pinned bytes to a file that only this process's user can change."""
    name = next(n for n, place in snapshot.paths.items() if os.path.realpath(place) == path)
    return os.path.join(_library_folder(snapshot), snapshot.root, *PurePosixPath(name).parts)


def _library_folder(*snapshots: Snapshot) -> str:
    """Folder with a copy of each shared library, which only this process's user can look into."""
    # The digest of a module in one file says nothing about its name.
    key = tuple((s.digest, s.root, *s.paths) for s in snapshots)
    if key not in _folders:
        folder = tempfile.mkdtemp(prefix="armpy-pinned-")
        # Not before the end: libraries may load others from beside them at any time.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for snapshot in snapshots:
            for name, path in snapshot.paths.items():
                if not is_source(name):
                    copy = Path(folder, snapshot.root, *PurePosixPath(name).parts)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(snapshot.contents[path])
        _folders[key] = folder
    return _folders[key]


def serve_distribution(snapshot: Snapshot, candidate: Candidate) -> None:
    """Have a pinned distribution's modules imported from a snapshot, now and later.

    Raises RejectionError if one of them was imported before in another way.
    """
    # Another registry may have served the same bytes before.
    finders = [finder for finder in sys.meta_path if isinstance(finder, SnapshotFinder)]
    if any(finder.snapshot.digest == snapshot.digest for finder in finders):
        return
    finder = SnapshotFinder(snapshot)
    # A module in `sys.modules` is not imported again, so the pin would say nothing about it.
    if any(map(finder.covers, [*sys.modules])):
        raise RejectionError(
            f"its module '{top_module(candidate.name)}' was imported before its pin was checked. "
            "Make the Runtime before anything of a pinned distribution is imported"
        )
    # In front, or Python's own finder would read the files that are there now. It stays, as parts
    # may be imported at any time.
    sys.meta_path.insert(0, finder)


def _is_part(name: str, packages: Collection[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:count]) in packages for count in range(1, len(parts)))
