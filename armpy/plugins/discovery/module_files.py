"""Files of modules and distributions: lists, permissions, contents."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path, PurePosixPath
from types import ModuleType
from weakref import WeakKeyDictionary

from armpy.core.file_digest import open_regular
from armpy.core.file_ownership import (
    HAS_OWNERS,
    kind_of,
    links_to,
    trusted_owners,
    why_foreign,
    why_writable,
)
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.discovery.directories import is_common
from armpy.plugins.discovery.references import is_own_file

_LIBRARY_MARKS = (".so", ".dylib", ".dll", ".pyd")
"""Part of every shared library's name; versions may follow."""

_BOOKKEEPING = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files of a ``*.dist-info`` that installers write, each in its own way."""

_digests: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()
"""By module, as its code is what its files held when it was imported."""

_UNPRINTABLE = frozenset("\\\n\r")
"""Characters of names that ``sha256sum`` writes in another way, or that end a line."""


def module_files(path: str) -> list[tuple[str, str]]:
    """The files of a module: relative and full path, sorted; bytecode is left out.

    Parameters
    ----------
    path : str
        A file, or a package's directory. Directories that are linked into it are followed once.
    """
    if not os.path.isdir(path):
        return [(os.path.basename(path), path)]
    files = []
    for folder, names in _walk(path):
        inner = Path(os.path.relpath(folder, path))
        if "__pycache__" not in inner.parts:
            files += [((inner / name).as_posix(), os.path.join(folder, name)) for name in names]
    return sorted(files)


def code_digest(kind: type) -> str:
    """Digest of the state of the files of a class's package, when it was first asked for.

    The packages of the classes that it inherits from belong to it, and its vendor's common code, if
    imported by then. What changes later is not in the code that runs. Empty for armpy's own files,
    whose version says what they are, and for what is in no file.
    """
    # A class that is made by a call of `type` may have its metaclass's module for its own.
    names = dict.fromkeys(str(base.__module__) for base in kind.__mro__)
    vendors = [name for name in names if name.partition(".")[0] not in sys.stdlib_module_names]
    return "".join(dict.fromkeys(map(_module_digest, vendors)))


def _module_digest(name: str) -> str:
    """Digest of the package of an imported module, with its vendor's common code."""
    module = sys.modules.get(name)
    if type(module) is not ModuleType:  # another kind may do anything when it is looked into
        return ""
    digest = _digests.get(module)
    if digest is None:
        group = f"{name.partition('.')[0]}."
        # A copy is one step; while items are listed, the garbage collector may run imports.
        shared = [
            other
            for name, other in sys.modules.copy().items()
            if name.startswith(group) and is_common(name) and type(other) is ModuleType
        ]
        files = [vars(part).get("__file__") for part in (module, *shared)]
        digest = _digests[module] = "".join(map(_package_digest, files))
    return digest


def _package_digest(path: object) -> str:
    if not isinstance(path, str) or not path:
        return ""
    try:
        while os.path.exists(f"{os.path.dirname(path)}/__init__.py"):
            path = os.path.dirname(path)
        if is_own_file(f"{path}/__init__.py"):
            return ""
        states = [(name, os.stat(place)) for name, place in module_files(path)]
    except (OSError, ValueError):  # no such file, as in an archive: the version has to do
        return ""
    return hashlib.sha256(
        repr([(n, s.st_size, s.st_mtime_ns) for n, s in states]).encode()
    ).hexdigest()


def module_places(path: str) -> list[str]:
    """All files and directories of a module, those of bytecode too, and where they really are.

    Parameters
    ----------
    path : str
        A file, or a package's directory.

    Returns
    -------
    list of str
        Directories around it and in it, then files, each sorted.
    """
    folders, files = set(), {path}
    if os.path.isdir(path):
        files.clear()
        for folder, names in _walk(path):
            folders.add(folder)
            files.update(os.path.join(folder, name) for name in names)
    homes = {os.path.dirname(os.path.realpath(place)) for place in folders | files}
    return [*sorted(folders | homes), *sorted(files)]


def _walk(path: str) -> Iterator[tuple[str, list[str]]]:
    """Each directory of a package with the names of its files; links are followed once."""

    # Otherwise a folder that cannot be read is passed over, and no digest would cover it.
    def fail(error: OSError) -> None:
        raise error

    # Links may lead round in a circle.
    seen = set()
    for folder, subfolders, names in os.walk(path, followlinks=True, onerror=fail):
        seen.add(os.path.realpath(folder))
        subfolders[:] = [
            sub for sub in subfolders if os.path.realpath(os.path.join(folder, sub)) not in seen
        ]
        yield folder, names


def why_insecure(
    path: str, directory: str = "", entry: str = "", owners: frozenset[int] | None = None
) -> str:
    """Why other users can change a module, or where a path leads to; empty if they cannot.

    Parameters
    ----------
    path : str
        Canonical path of a file or a package.
    directory : str
        Where it was found, if that is another directory.
    entry : str
        By which it was found, if that is a link to it, or to another link.
    owners : frozenset of int, optional
        User ids that are trusted: the current user and root by default.

    Notes
    -----
    Looks at the directory in which it was found, the one in which it is, and the file or all
    that the package has, with the directories that links in it lead to; not further up. A
    sticky bit does not help: others could still add a module. Then at each link on the way, those
    in a package too, and at the directory it is in. In one with a sticky bit only a link's owner
    can put another in its place.
    """
    if not HAS_OWNERS:  # pragma: no cover - of Windows
        return ""
    trusted = trusted_owners() if owners is None else owners
    places = module_places(path)
    if reason := _first_reason([*filter(None, [directory]), *places], trusted):
        return reason
    # The owner of a link chooses the module, even if its target has another owner now.
    for link in sorted({link for place in (entry or path, *places) for link in links_to(place)}):
        reason = why_foreign(os.lstat(link), f"link {link}", trusted) or _first_reason(
            [os.path.dirname(link)], trusted, spared=stat.S_ISVTX
        )
        if reason:
            return f"on the way to it, {reason}"
    return ""


def _first_reason(places: Iterable[str], trusted: frozenset[int], spared: int = 0) -> str:
    for place in places:
        info = os.stat(place)
        subject = f"{kind_of(info)} {place}"
        if reason := why_foreign(info, subject, trusted):
            return reason
        if reason := why_writable(info, subject, spared):
            return f"{reason}. Run chmod go-w on it, or set trust_insecure_paths"
    return ""


class Snapshot:
    """Files of a module, package or distribution, each read once: the hashed code runs.

    Raises OSError if a file cannot be read; RejectionError if a name has a line end or a backslash:
    two trees could have one digest.

    Parameters
    ----------
    files : iterable of (str, str)
        Names, relative to `root` and with slashes, and full paths.
    is_single : bool
        Whether it is a module in one file, whose digest is that of its contents.
    root : str
        Name of the package's folder; a module in one file and a distribution have none.
    """

    def __init__(
        self, files: Iterable[tuple[str, str]], *, is_single: bool = False, root: str = ""
    ) -> None:
        self._is_single = is_single
        self.root = root
        # Path of each source and shared library by its name; other files are hashed and let go.
        self.paths: dict[str, str] = {}
        self.contents: dict[str, bytes] = {}  # by path
        lines = hashlib.sha256()
        digest = ""
        for name, path in files:
            if _UNPRINTABLE.intersection(name):
                raise RejectionError(f"its file {name!r} has a line end or backslash in its name")
            # Read once: between two readings another file could be put there.
            content = read_regular(path)
            digest = hashlib.sha256(content).hexdigest()
            lines.update(f"{digest}  {name}\n".encode(errors="surrogateescape"))
            is_library = any(mark in PurePosixPath(name).suffixes for mark in _LIBRARY_MARKS)
            if is_single or is_source(name) or is_library:
                self.paths[name] = path
                self.contents[path] = content
        # SHA-256 of the lines that ``sha256sum`` prints for the files, so that it can be checked by
        # hand; of a module in one file, the file's.
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
        Path of the file or directory.
    entry : str, optional
        A link to it, which says what kind of file it is.
    """
    name = os.path.basename(entry or path)
    if os.path.isdir(path):
        return Snapshot(module_files(path), root=name)
    return Snapshot([(name, path)], is_single=True)


def distribution_snapshot(name: str) -> Snapshot:
    """Read the files that an installed distribution's RECORD lists, sorted by name.

    Raises RejectionError if it lists none.

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


def _counts(path: PurePosixPath) -> bool:
    """Return whether a file listed in RECORD is part of the wheel, not of its installation."""
    # Scripts have the interpreter's path in their first line, which differs by installation.
    is_script = ".." in path.parts and path.parent.name in ("bin", "Scripts")
    is_note = path.parent.suffix == ".dist-info" and path.name in _BOOKKEEPING
    return not (path.suffix == ".pyc" or is_script or is_note)


def read_regular(path: str) -> bytes:
    """Contents of a file; raises OSError if it is not a regular one."""
    with open_regular(path) as file:
        return file.read()


def is_source(name: str) -> bool:
    """Return whether a file is a Python source, by its name."""
    return PurePosixPath(name).suffix in SOURCE_SUFFIXES
