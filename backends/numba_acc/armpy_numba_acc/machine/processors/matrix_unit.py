"""Matrix unit (AMX): how it is configured, and the permission to use it, which Linux gives."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Numbers of Linux on x86-64: the system call, the request, and the state of a thread."""


ROWS, ROW_BYTES = 16, 64
"""Of a tile, at most."""

CONFIGURATION_BYTES = 64


def configuration(first_rows: int, second_rows: int, block_bytes: int) -> bytes:
    """Return the configuration of the unit's tiles, for the products of two by two of them.

    Parameters
    ----------
    first_rows, second_rows
        Rows of the tiles of elements, at least one each.
    block_bytes
        Of a row that are multiplied at once.
    """
    words, rows = [0] * 8, [0] * 8
    for tile in (0, 1, 2, 3):
        words[tile], rows[tile] = ROW_BYTES, (first_rows, second_rows)[tile // 2]
    for tile in (4, 5):
        words[tile], rows[tile] = block_bytes, (first_rows, second_rows)[tile - 4]
    for tile in (6, 7):
        words[tile], rows[tile] = ROW_BYTES, block_bytes // 4
    sizes = b"".join(size.to_bytes(2, "little") for size in words)
    return bytes([1, *[0] * 15]) + sizes + bytes(16) + bytes(rows) + bytes(8)


@cache
def has_matrix_unit() -> bool:
    """Return whether the processor says that it has one, as the operating system shows it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return False
    return {"amx_tile", "amx_int8"} <= set(text.partition("\n\n")[0].split())


@cache
def may_use_matrix_unit() -> bool:
    """Ask for the tiles, for all threads of the process; whether they may be used.

    Reference: Linux, Documentation/arch/x86/xstate.rst
    """
    if not sys.platform.startswith("linux"):
        return False
    # A process has to ask, and keeps the permission, as do the threads that it starts.
    ask = ctypes.CDLL(None).syscall
    return bool(ask(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)
