"""SHA-256 of a file's contents."""

from __future__ import annotations

import errno
import hashlib
import os
import stat


def content_digest(path: str) -> str:
    """SHA-256 of a file's contents, in hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read, or is not a regular one.

    Notes
    -----
    The contents are read at each call. Device, inode, size and times do not tell whether a file was
    changed: a write through a memory mapping shows in them when the page is written back, and on
    tmpfs never.
    """
    # Not blocking: a pipe without a writer would never open.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return hashlib.file_digest(file, "sha256").hexdigest()
