"""Small files in armpy's cache directory: read if they are the user's own, written whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import BinaryIO, NoReturn

from armpy.core.file_ownership import make_own_folder

SWITCH_VARIABLE = "ARMPY_COMPILED_CACHE"
"""Environment variable that switches what armpy keeps for later starts ``off``."""
UNFINISHED_SUFFIX = ".tmp"
"""Suffix of files that are being written; one that a killed process left is deleted after a while.
"""

# Of a damaged file no more is read; those that are read whole are far smaller.
_LARGEST_BYTES = 1 << 22


class UnusableError(Exception):
    """A file that is not an entry, or not the one that its name says, or not the user's own."""


def is_switched_off(variables: Mapping[str, str]) -> bool:
    """Return whether the environment says that nothing is to be kept for later starts."""
    return variables.get(SWITCH_VARIABLE, "").strip().lower() == "off"


def refuse(reason: str) -> NoReturn:
    """Say why a file is not used."""
    raise UnusableError(reason)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[int]:
    """Open a regular file that only the user can have written.

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
        # Of the opened file: the path may lead to another file by now.
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            refuse("it is not a regular file")
        if hasattr(os, "geteuid"):
            if info.st_uid != os.geteuid():
                refuse("it belongs to another user")
            if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                refuse("others can write to it")
        yield handle
    finally:
        os.close(handle)


@contextmanager
def replacing(
    path: str | os.PathLike[str],  # its folder has to be there
    *,
    is_private: bool = False,  # whether only the user can read it; else the process's mask decides
) -> Iterator[BinaryIO]:
    """Open a new file that takes a path's place in one step when all of it is written."""
    mode = 0o600 if is_private else 0o666
    # In the same folder, as a file is only renamed in one step within one file system.
    name = f"{os.getpid()}.{os.urandom(8).hex()}{UNFINISHED_SUFFIX}"
    unfinished = os.path.join(os.path.dirname(path), name)
    try:
        with open(unfinished, "xb", opener=lambda new, flags: os.open(new, flags, mode)) as file:
            yield file
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write a private file of some pieces with `replacing`."""
    with replacing(path, is_private=True) as file:
        for piece in pieces:
            file.write(piece)


def read_checked(path: str | os.PathLike[str]) -> bytes | None:
    """Read a file that `write_checked` wrote; None if there is none that can be believed."""
    with suppress(OSError, UnusableError), opened(path) as handle:
        checksum, _, contents = os.read(handle, _LARGEST_BYTES).partition(b"\n")
        if checksum == sha256(contents).hexdigest().encode():
            return contents
    return None


def write_checked(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file with its checksum and the folder for it, if that can be done.

    It keeps a result that can be computed again: without it only time is lost.
    """
    with suppress(OSError):
        make_own_folder(os.path.dirname(path))
        write_whole(path, [sha256(contents).hexdigest().encode(), b"\n", contents])
