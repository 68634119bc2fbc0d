"""Packed constants that programs share, whatever sizes they are for."""

from __future__ import annotations

import hashlib
import threading
import weakref

import numpy as np

from armpy.ops.operation import Array
from armpy_numba_acc.machine.alignment import aligned
from armpy_numba_acc.program.offered import offered_constants

LEAST_BYTES = 4096
"""Smaller constants lie with each program."""

_STEP_BYTES = 64
"""Constants begin at multiples of it among those of their program."""

_MOST_COMPARED = 8
"""Places among a program's constants that are looked at for one constant."""

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
    slack_bytes
        That may be read after them.

    Returns
    -------
    ndarray, uint8
        Not to be written to. It is kept as long as it is referenced, and so is the program's memory
        that it lies in, if one had these bytes already (`offer_constants`).
    """
    raw_bytes = data.reshape(-1).view(np.uint8)
    key = hashlib.sha256(raw_bytes.data).digest()
    with _lock:
        shared_array = _known.get(key)
        if shared_array is None:
            shared_array = _found_among_offered(raw_bytes)
            if shared_array is not None:
                _known[key] = shared_array
        if shared_array is None:
            memory = aligned(raw_bytes.size + slack_bytes)
            memory[: raw_bytes.size] = raw_bytes
            memory.flags.writeable = False
            shared_array = _known[key] = memory.view(_SharedBytes)
        return shared_array


def _found_among_offered(data: Array) -> _SharedBytes | None:
    """The same bytes among the constants of a program that is there; it stays as long as they."""
    words = data[: data.size // 8 * 8].view(np.uint64)
    # A word that is not zero: weights distinguish places, biases are often zeros.
    place = int(np.argmax(words != 0))
    line, word = divmod(place, _STEP_BYTES // 8)
    for constants in offered_constants():
        if constants.size < data.size or not words[place]:
            continue
        whole = constants[: constants.size // _STEP_BYTES * _STEP_BYTES].view(np.uint64)
        lines = np.flatnonzero(whole[word :: _STEP_BYTES // 8] == words[place]) - line
        for begin in (lines[:_MOST_COMPARED] * _STEP_BYTES).tolist():
            part = constants[begin : begin + data.size] if begin >= 0 else data[:0]
            if part.size == data.size and np.array_equal(part, data):
                return part.view(_SharedBytes)
    return None
