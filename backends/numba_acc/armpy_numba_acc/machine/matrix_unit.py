"""Permission to use a matrix unit (AMX), which Linux gives to processes that ask for it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Numbers of Linux on x86-64: the system call, what is asked, and for which state of a thread."""


@cache
def may_use_matrix_unit() -> bool:
    """Ask for the tiles, for all threads of the process; whether they may be used.

    References
    ----------
    Linux, Documentation/arch/x86/xstate.rst
    """
    if not sys.platform.startswith("linux"):
        return False
    ask = ctypes.CDLL(None).syscall
    return bool(ask(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)
