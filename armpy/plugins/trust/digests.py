"""SHA-256 digests of modules and distributions."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterable
from pathlib import PurePosixPath

from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.discovery.directories import module_files

_BOOKKEEPING = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files of a ``*.dist-info`` that installers write, each in its own way."""


_UNPRINTABLE = frozenset("\\\n\r")
"""Characters of names that ``sha256sum`` writes in another way, or that end a line."""


def open_regular(path: str) -> io.BufferedReader:
    """Open a file to read its bytes.

    Raises
    ------
    OSError
        If it cannot be read, or is a pipe, a device or another thing that may never end.
    """
    # Without waiting: opening a pipe to which nobody writes would take for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    # Of what was opened, not of the path, which may be another file by now.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return open(descriptor, "rb")


def read_regular(path: str) -> bytes:
    """The contents of a file; raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def file_digest(path: str) -> str:
    """SHA-256 of a file's contents, in hexadecimal; raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_line(digest: str, name: str) -> bytes:
    """The line that ``sha256sum`` prints for a file.

    Raises
    ------
    RejectionError
        If the name has a line end or a backslash: two trees could have one digest.
    """
    if _UNPRINTABLE.intersection(name):
        raise RejectionError(f"its file {name!r} has a line end or backslash in its name")
    return f"{digest}  {name}\n".encode(errors="surrogateescape")


def files_digest(files: Iterable[tuple[str, str]]) -> str:
    """SHA-256 over the lines that ``sha256sum`` prints for some files.

    Parameters
    ----------
    files : iterable of (str, str)
        The name to print and the path to read.

    Raises
    ------
    RejectionError
        If a name cannot be told from several lines.
    """
    # In the form of `sha256sum`, so that a pin can be checked by hand.
    lines = hashlib.sha256()
    for name, path in files:
        lines.update(digest_line(file_digest(path), name))
    return lines.hexdigest()


def module_digest(path: str) -> str:
    """That of a file's contents, or `files_digest` of a package's files.

    Notes
    -----
    Names are relative to the package's directory and sorted; bytecode does not count.
    """
    return files_digest(module_files(path)) if os.path.isdir(path) else file_digest(path)


def distribution_files(name: str) -> list[tuple[str, str]]:
    """The files that an installed distribution's RECORD lists: name and full path, sorted.

    Raises
    ------
    RejectionError
        If it lists none.

    Notes
    -----
    Names are relative to the folder of installation and sorted. Bytecode, scripts and the
    files that installers write do not count, so that the names are the same wherever the
    wheel is installed.
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
    return sorted(counted.items())


def distribution_digest(name: str) -> str:
    """`files_digest` of `distribution_files`; raises RejectionError as that does."""
    return files_digest(distribution_files(name))


def _counts(path: PurePosixPath) -> bool:
    """Whether a file that a RECORD lists is part of the wheel rather than of its installation."""
    # Scripts have the interpreter's path in their first line, which differs by installation.
    is_script = ".." in path.parts and path.parent.name in ("bin", "Scripts")
    is_note = path.parent.suffix == ".dist-info" and path.name in _BOOKKEEPING
    return not (path.suffix == ".pyc" or is_script or is_note)
