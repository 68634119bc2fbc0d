"""SHA-256 of what a start reads: few bytes are hashed sooner than OpenSSL is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _hashlib import HASH

_OWN_MODULES = ("_sha2", "_sha256")
"""With the interpreter's own implementation: from Python 3.12 on, and before."""

_LARGE_BYTES = 1 << 18
"""From so many on OpenSSL is done first: it is several times as fast, and takes 2 ms to load."""


def sha256(data: bytes | memoryview = b"") -> HASH:
    """What `hashlib.sha256` gives for some bytes."""
    if "hashlib" in sys.modules or memoryview(data).nbytes >= _LARGE_BYTES:
        return _library().sha256(data)  # type: ignore[no-any-return]  # found by its name
    return _own_sha256(data)


def sha256_of_file(file: BinaryIO) -> str:
    """Digest of what is left to read of an open file, in hexadecimal digits."""
    return str(_library().file_digest(file, "sha256").hexdigest())


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
