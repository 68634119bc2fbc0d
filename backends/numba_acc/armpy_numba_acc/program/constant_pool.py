"""Packed constants that programs share, whatever sizes they are for."""

from __future__ import annotations

import hashlib
import threading
import weakref

import numpy as np

from armpy.ops.operation import Array
from armpy_numba_acc.machine.alignment import aligned
from armpy_numba_acc.program.offered import live_constants

SLACK_BYTES = 64
"""Bytes that kernels may read past the end of a constant or a buffer."""

MIN_SHARED_BYTES = 4096
"""Smaller constants lie with each program."""

_ROW_BYTES = 64
"""Constants of a program begin at multiples of this offset."""

_MAX_COMPARISONS = 8
"""Limit of offsets in one program's constants that are compared with a constant."""

_lock = threading.Lock()
_known: weakref.WeakValueDictionary[bytes, _SharedBytes] = weakref.WeakValueDictionary()


class _SharedBytes(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Shared bytes that can be weakly referenced; freed when no program refers to them."""


def share_bytes(data: Array) -> Array:
    """Return the same bytes in cache-aligned memory that all programs with equal bytes share.

    Parameters
    ----------
    data : ndarray
        C-contiguous, with at least 8 bytes.

    Returns
    -------
    ndarray, uint8
        Not to be written to; `SLACK_BYTES` more bytes can be read after it. If a live program's
        constants contain these bytes, it is a view that keeps their memory alive.
    """
    if isinstance(data, _SharedBytes):
        return data
    raw_bytes = data.reshape(-1).view(np.uint8)
    key = hashlib.sha256(raw_bytes.data).digest()
    with _lock:
        shared_array = _known.get(key)
        if shared_array is None:
            shared_array = _find_in_live_constants(raw_bytes)
            if shared_array is not None:
                _known[key] = shared_array
        if shared_array is None:
            memory = aligned(raw_bytes.size + SLACK_BYTES)
            memory[: raw_bytes.size] = raw_bytes
            memory.flags.writeable = False
            shared_array = _known[key] = memory.view(_SharedBytes)
        return shared_array


def _find_in_live_constants(data: Array) -> _SharedBytes | None:
    """Return a view of the same bytes among the constants of a live program.

    The first 8-byte word that is not zero is the fingerprint: each row that has it at the same
    column is a possible start, whose bytes are compared.
    """
    words = data[: data.size // 8 * 8].view(np.uint64)
    fingerprint_index = int(np.argmax(words != 0))
    fingerprint = words[fingerprint_index]
    if not fingerprint:  # all zeros, which distinguish nothing
        return None
    row, column = divmod(fingerprint_index, _ROW_BYTES // 8)
    for constants in live_constants():
        rows = constants[: constants.size // _ROW_BYTES * _ROW_BYTES].view(np.uint64)
        starts = np.flatnonzero(rows[column :: _ROW_BYTES // 8] == fingerprint) - row
        for begin in (starts[:_MAX_COMPARISONS] * _ROW_BYTES).tolist():
            end = begin + data.size
            if begin < 0 or end + SLACK_BYTES > constants.size:
                continue
            part = constants[begin:end]
            if np.array_equal(part, data):
                return part.view(_SharedBytes)
    return None
