"""The C library of this process, on POSIX and Windows."""

from __future__ import annotations

import ctypes
import sys


def c_library() -> ctypes.CDLL:
    """The library whose streams and memory this process has."""
    # Windows' programs are linked to it by name; those of POSIX have its functions themselves.
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
