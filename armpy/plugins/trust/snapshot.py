"""Reader of modules and distributions: the bytes that are hashed are those that run."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import PurePosixPath

from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.discovery.directories import module_files

_LIBRARY_MARKS = (".so", ".dylib", ".dll", ".pyd")
"""What the name of a shared library has in it; versions may follow."""

_BOOKKEEPING = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files of a ``*.dist-info`` that installers write, each in its own way."""

_UNPRINTABLE = frozenset("\\\n\r")
"""Characters of names that ``sha256sum`` writes in another way, or that end a line."""


class Snapshot:
    """Files of a module, package or distribution, each read once.

    Parameters
    ----------
    files : iterable of (str, str)
        Names, relative to `root` and with slashes, and full paths.
    is_single : bool
        Whether it is a module in one file, whose digest is that of its contents.
    root : str
        Name of the package's folder; a module in one file and a distribution have none.

    Attributes
    ----------
    digest : str
        SHA-256 of the lines that ``sha256sum`` prints for the files, so that it can be checked by
        hand; of a module in one file, the file's.
    paths : dict of str to str
        Path of each source and shared library by its name; other files are hashed and let go.
    contents : dict of str to bytes
        By path.

    Raises
    ------
    OSError
        If a file cannot be read.
    RejectionError
        If a name has a line end or a backslash: two trees could have one digest.
    """

    def __init__(
        self, files: Iterable[tuple[str, str]], *, is_single: bool = False, root: str = ""
    ) -> None:
        self._is_single = is_single
        self.root = root
        self.paths: dict[str, str] = {}
        self.contents: dict[str, bytes] = {}
        lines = hashlib.sha256()
        digest = ""
        for name, path in files:
            if _UNPRINTABLE.intersection(name):
                raise RejectionError(f"its file {name!r} has a line end or backslash in its name")
            # Read once: between two readings another file could be put there.
            content = read_regular(path)
            digest = hashlib.sha256(content).hexdigest()
            lines.update(f"{digest}  {name}\n".encode(errors="surrogateescape"))
            if is_single or is_source(name) or _is_library(name):
                self.paths[name] = path
                self.contents[path] = content
        self.digest = digest if is_single else lines.hexdigest()

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """The file of each module, by its dotted name relative to the root."""
        if self._is_single:
            return dict.fromkeys([""], next(iter(self.paths)))
        files: dict[str, str] = {}
        # As Python does it: a package goes before an extension, that before a source.
        suffixes = [*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES]
        for ending in [*(f"/__init__{suffix}" for suffix in suffixes), *suffixes]:
            for name in self.paths:
                stem = f"/{name}".removesuffix(ending)
                # With a dot left over it is for another Python, or cannot be imported.
                if stem != f"/{name}" and "." not in stem:
                    files.setdefault(stem.strip("/").replace("/", "."), name)
        return files


def module_snapshot(path: str, entry: str = "") -> Snapshot:
    """Read a module or package, whose names are sorted and without bytecode.

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


def distribution_snapshot(name: str) -> Snapshot:
    """Read the files that an installed distribution's RECORD lists, sorted by name.

    Raises
    ------
    RejectionError
        If it lists none.

    Notes
    -----
    Names are relative to the folder of installation. Bytecode, scripts and the files that
    installers write do not count, so that a wheel has one digest wherever it is installed.
    """
    # Slow to import, and needed only where distributions are pinned.
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        files = []
    counted = {str(PurePosixPath(f)): str(f.locate()) for f in files if _counts(PurePosixPath(f))}
    if not counted:
        raise RejectionError(f"distribution '{name}' lists no installed files to be hashed")
    return Snapshot(sorted(counted.items()))


def read_regular(path: str) -> bytes:
    """Read a file; raises OSError if it is a pipe, a device or another file that may not end."""
    # Without waiting: opening a pipe to which no process writes would take for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    # Of what was opened, not of the path, which may be another file by now.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    with open(descriptor, "rb") as file:
        return file.read()


def is_source(name: str) -> bool:
    """Whether a file is a Python source, by its name."""
    return PurePosixPath(name).suffix in SOURCE_SUFFIXES


def _is_library(name: str) -> bool:
    """Whether a file is a shared library, by its name."""
    return any(mark in PurePosixPath(name).suffixes for mark in _LIBRARY_MARKS)


def _counts(path: PurePosixPath) -> bool:
    # Scripts have the interpreter's path in their first line, which differs by installation.
    is_script = ".." in path.parts and path.parent.name in ("bin", "Scripts")
    is_note = path.parent.suffix == ".dist-info" and path.name in _BOOKKEEPING
    return not (path.suffix == ".pyc" or is_script or is_note)
