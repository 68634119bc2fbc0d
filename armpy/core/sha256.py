"""SHA-256 of what a start reads: few bytes are hashed sooner than OpenSSL is loaded."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _hashlib import HASH

_OWN_MODULES = ("_sha2", "_sha256")
"""With the interpreter's own implementation: from Python 3.12 on, and before."""

_LARGE_BYTES = 1 << 18
"""From so many on OpenSSL is done first: it is several times as fast, and takes 2 ms to load."""

_PART_BYTES = 1 << 16
"""Read at a time: it stays in the processor's cache, which `hashlib.file_digest`'s buffer does not;
a mapping would end the process if the file were cut short."""


def sha256(data: bytes | memoryview = b"") -> HASH:
    """What `hashlib.sha256` gives for some bytes."""
    if "hashlib" in sys.modules or memoryview(data).nbytes >= _LARGE_BYTES:
        return _library().sha256(data)  # type: ignore[no-any-return]  # found by its name
    return _own_sha256(data)


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
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        is_large = info.st_size >= _LARGE_BYTES
        digest = _library().sha256() if is_large else sha256()
        part = memoryview(bytearray(_PART_BYTES))
        while size := file.readinto(part):
            digest.update(part[:size])
        return str(digest.hexdigest())


def _library() -> ModuleType:
    """The standard library's module, which loads OpenSSL."""
    return import_module("hashlib")


def _found() -> Callable[[bytes | memoryview], HASH]:
    """The interpreter's function; the library's, where it has none."""
    for name in _OWN_MODULES:
        with suppress(ImportError):
            return import_module(name).sha256  # type: ignore[no-any-return]  # likewise
    return _library().sha256  # type: ignore[no-any-return]  # likewise


_own_sha256 = _found()
