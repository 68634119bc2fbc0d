"""Discovery of backend modules in directories."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from armpy.records import dataclass

ENVIRONMENT_VARIABLE = "ARMPY_DYNAMIC_BACKENDS_PATH"
"""Directories to look in if the options name none, with ``os.pathsep`` between them."""

_NAME = re.compile(r"[a-zA-Z0-9]+_[a-zA-Z0-9]+_backend(\.py)?")
_INIT = "__init__.py"
_MOST_LINKS = 40
"""As many as Linux follows on one path."""

_log = logging.getLogger("armpy.plugins")


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A directory or an entry of one that was not taken up.

    Parameters
    ----------
    path, reason : str
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A file or package in which a backend may be.

    Parameters
    ----------
    name : str
        Of the module: that of the directory's entry, without ``.py``.
    path : str
        Canonical path of the file or the package's directory.
    directory : str
        Where it was found.
    entry : str
        Path of the directory's entry, which may be a link to the other.
    """

    name: str
    path: str
    directory: str
    entry: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a look into directories brought.

    Parameters
    ----------
    modules : tuple of ModuleFile
    skipped : tuple of SkippedPath
    """

    modules: tuple[ModuleFile, ...]
    skipped: tuple[SkippedPath, ...]


def is_module_name(name: str) -> bool:
    """Whether a directory's entry is named as a backend's module or package.

    Notes
    -----
    ``<vendor>_<name>_backend``, with ``.py`` for a file; letters and digits of ASCII only. Arm NN's
    version numbers after ``.so`` have no counterpart: a module tells its version itself.

    References
    ----------
    Arm NN backend developer guide, "Dynamic backend file naming convention".
    """
    return _NAME.fullmatch(name) is not None


def why_invalid(path: str) -> str:
    """Why a directory cannot be looked into; empty if it can."""
    if not path:
        return "the path is empty"
    if not os.path.exists(path):
        return "the path does not exist"
    if not os.path.isdir(path):
        return "the path is not a directory"
    if not os.path.isabs(path):
        return "the path is not absolute"
    return ""


def backend_paths(
    override: Sequence[str] = (), environment: str = ""
) -> tuple[list[str], list[SkippedPath]]:
    """The directories to look into, in order, and those that cannot be used.

    Parameters
    ----------
    override : sequence of str
        If there are any, the environment does not count.
    environment : str
        Paths separated by ``os.pathsep``; empty ones do not count.
    """
    given = override or [part for part in environment.split(os.pathsep) if part]
    valid, skipped = [], []
    for path in dict.fromkeys(given):
        if reason := why_invalid(path):
            skipped.append(_skip(path, reason))
        else:
            valid.append(path)
    return valid, skipped


def find_modules(paths: Iterable[str]) -> Found:
    """Every backend module in some directories, in their order and then sorted by name.

    Notes
    -----
    Each canonical path counts once. The name that counts is the directory entry's own, not
    that of what it links to.
    """
    modules: dict[str, ModuleFile] = {}
    skipped: list[SkippedPath] = []
    for directory in paths:
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            skipped.append(_skip(directory, f"it cannot be read: {error.strerror}"))
            continue
        for name in names:
            entry = os.path.join(directory, name)
            if reason := _why_no_module(entry, name):
                if "backend" in name.lower():
                    skipped.append(_skip(entry, reason))
                continue
            path = os.path.realpath(entry)
            modules.setdefault(path, ModuleFile(name.removesuffix(".py"), path, directory, entry))
    return Found(tuple(modules.values()), tuple(skipped))


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


def links_to(path: str) -> list[str]:
    """The symbolic links that are followed on the way to a file or directory, in order.

    Raises
    ------
    OSError
        If they lead in a circle, or one cannot be read.
    """
    links: list[str] = []
    place, rest = os.sep, os.path.abspath(path).split(os.sep)[::-1]
    while rest:
        here = os.path.normpath(os.path.join(place, rest.pop()))
        if not os.path.islink(here):
            place = here
            continue
        links.append(here)
        if len(links) > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(here)
        place = os.sep if os.path.isabs(target) else place
        rest += target.split(os.sep)[::-1]
    return links


def init_file(path: str) -> str:
    """The file that is run first: a package's ``__init__.py`` or the file itself."""
    return os.path.join(path, _INIT) if os.path.isdir(path) else path


def _walk(path: str) -> Iterator[tuple[str, list[str]]]:
    """Each directory of a package with the names of its files; links are followed once."""

    def fail(error: OSError) -> None:
        raise error

    seen = set()
    for folder, subfolders, names in os.walk(path, followlinks=True, onerror=fail):
        seen.add(os.path.realpath(folder))
        subfolders[:] = [
            sub for sub in subfolders if os.path.realpath(os.path.join(folder, sub)) not in seen
        ]
        yield folder, names


def _why_no_module(entry: str, name: str) -> str:
    """Why an entry of a directory is no backend module; empty if it is one."""
    if not is_module_name(name):
        return "its name is not <vendor>_<name>_backend, with .py for a file"
    if not os.path.exists(entry):
        return "it is a link to something that does not exist"
    if name.endswith(".py"):
        return "" if os.path.isfile(entry) else "it is not a file"
    if not os.path.isfile(os.path.join(entry, _INIT)):
        return f"it is not a package: it has no {_INIT}"
    return ""


def _skip(path: str, reason: str) -> SkippedPath:
    """Note and log that something is not taken up."""
    _log.warning("backends' path '%s' is skipped: %s", path, reason)
    return SkippedPath(path, reason)
