"""Contents of regular files, and their SHA-256."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import FileIO

BYTES: int = getattr(os, "O_BINARY", 0)
"""Flag of files that hold bytes: Windows changes ends of lines else."""

READ_BYTES: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | BYTES
"""Flags of a file to read. It does not block: a pipe without a writer would never open."""


def open_regular(path: str) -> FileIO:
    """Open a file for reading; raises OSError if it is a pipe, a device or the like."""
    handle = os.open(path, READ_BYTES)
    # Of the opened file, not of the path, which may be another file by now.
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"{path} is not a regular file")
    return open(handle, "rb", buffering=0)


def content_digest(path: str) -> str:
    """SHA-256 of a file's contents, in hexadecimal digits.

    The contents are read at each call. Device, inode, size and times do not prove that a file is
    unchanged: a write through a memory mapping shows in them when the page is written back, and on
    tmpfs never.

    Raises
    ------
    OSError
        If the file cannot be read, or is not a regular one.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
