"""Small files in armpy's cache directory: read if they are the user's own, written whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import NoReturn

from armpy.core.file_ownership import make_own_folder

SWITCH_VARIABLE = "ARMPY_COMPILED_CACHE"
"""Environment variable that switches what armpy keeps for later starts ``off``."""


# Of a damaged file no more is read; those that are read whole are far smaller.
_LARGEST_BYTES = 1 << 22


class UnusableError(Exception):
    """A file that is no entry, or not the one that its name says, or not the user's own."""


def is_switched_off(variables: Mapping[str, str]) -> bool:
    """Whether the environment says that nothing is to be kept for later starts."""
    return variables.get(SWITCH_VARIABLE, "").strip().lower() == "off"


def refuse(reason: str) -> NoReturn:
    """Say why a file is not used."""
    raise UnusableError(reason)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor of a regular file that nobody but the user can have written.

    Raises
    ------
    UnusableError
        If others can have written it.
    OSError
        If it cannot be opened; a symbolic link cannot.
    """
    flags = os.O_RDONLY
    # No links, which others may have put there; no waiting for a pipe; no line ends of Windows.
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags)
    try:
        # Of what was opened: the path may lead to another file by now.
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            refuse("it is no regular file")
        if hasattr(os, "geteuid"):
            if info.st_uid != os.geteuid():
                refuse("it belongs to somebody else")
            if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                refuse("others can write to it")
        yield handle
    finally:
        os.close(handle)


def write_whole(
    path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], suffix: str = ""
) -> None:
    """Write a file that takes a path's place when all of it is there.

    Parameters
    ----------
    path : str or path-like
        Its folder has to be there.
    pieces : iterable of bytes or memoryview
        What it holds, one after the other.
    suffix : str
        Of the unfinished file's name.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left of it then.
    """
    import tempfile  # noqa: PLC0415 - not needed to read

    # In the same folder, as a file is only renamed at once within one file system.
    handle, unfinished = tempfile.mkstemp(suffix=suffix, dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(unfinished, path)
    except BaseException:
        # An interrupt would leave the unfinished file as well, under a name that nobody looks up.
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def read_checked(path: str | os.PathLike[str]) -> bytes | None:
    """Read a file that `write_checked` wrote; None if there is none that can be believed."""
    with suppress(OSError, UnusableError), opened(path) as handle:
        checksum, _, contents = os.read(handle, _LARGEST_BYTES).partition(b"\n")
        if checksum == sha256(contents).hexdigest().encode():
            return contents
    return None


def write_checked(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file with its checksum and the folder for it, if that can be done.

    Notes
    -----
    It keeps a result that can be computed again: without it only time is lost.
    """
    with suppress(OSError):
        make_own_folder(os.path.dirname(path))
        write_whole(path, [sha256(contents).hexdigest().encode(), b"\n", contents], ".tmp")
