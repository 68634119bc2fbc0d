"""Packed constants that programs share, whatever sizes they are for."""

from __future__ import annotations

import hashlib
import threading
import weakref

import numpy as np

from armpy.ops.operation import Array
from armpy_numba_acc.machine.alignment import aligned

LEAST_BYTES = 4096
"""Smaller constants lie with each program."""

_lock = threading.Lock()
_known: weakref.WeakValueDictionary[bytes, _SharedBytes] = weakref.WeakValueDictionary()


class _SharedBytes(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Bytes that go with the last program that has them."""


def shared(data: Array, slack_bytes: int) -> Array:
    """The same bytes in memory that begins at a cache line; equal ones are there once.

    Parameters
    ----------
    data : ndarray
        C-contiguous.
    slack_bytes : int
        That may be read behind them.

    Returns
    -------
    ndarray, uint8
        Not to be written to. It is kept as long as somebody has it.
    """
    given = data.reshape(-1).view(np.uint8)
    key = hashlib.sha256(given.data).digest()
    with _lock:
        found = _known.get(key)
        if found is None:
            memory = aligned(given.size + slack_bytes)
            memory[: given.size] = given
            memory.flags.writeable = False
            found = _known[key] = memory.view(_SharedBytes)
        return found
