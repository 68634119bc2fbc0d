"""FarmHash's 64-bit fingerprint of many byte strings of one length.

References
----------
FarmHash ``Fingerprint64`` (``farmhashna::Hash64``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint64]
Fetch: TypeAlias = Callable[[int], Words]

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED = 81
_BLOCK_BYTES = 64


def fingerprint64(strings: npt.NDArray[np.uint8]) -> Words:
    """Hash each row.

    Arithmetic is modulo 2**64.

    Parameters
    ----------
    strings : ndarray, uint8, shape (n, length)

    Returns
    -------
    ndarray, uint64, shape (n,)
    """
    length = strings.shape[1]
    if length <= 16:
        return _hash_to_16(strings, length)
    if length <= 32:
        return _hash_to_32(_fetcher(strings), length)
    if length <= _BLOCK_BYTES:
        return _hash_to_64(_fetcher(strings), length)
    return _hash_long(_fetcher(strings), length)


def _fetcher(strings: npt.NDArray[np.uint8], size_bytes: int = 8) -> Fetch:
    """Reads little-endian words; a negative offset counts from the end."""
    length = strings.shape[1]

    def fetch(offset: int) -> Words:
        start = offset % length if offset < 0 else offset
        raw = np.ascontiguousarray(strings[:, start : start + size_bytes])
        return raw.view(f"<u{size_bytes}")[:, 0].astype(np.uint64)

    return fetch


def _number(value: int) -> np.uint64:
    """An integer as a word."""
    return np.uint64(value % (1 << 64))


def _rotated(words: Words, count: int) -> Words:
    return (words >> np.uint64(count)) | (words << np.uint64(64 - count))


def _mixed(words: Words) -> Words:
    """Fold the upper bits in."""
    return words ^ (words >> np.uint64(47))


def _joined(u: Words, v: Words, multiplier: Words | np.uint64) -> Words:
    """Hash two words to one."""
    a = _mixed((u ^ v) * multiplier)
    return _mixed((v ^ a) * multiplier) * multiplier


def _hash_to_16(strings: npt.NDArray[np.uint8], length: int) -> Words:
    multiplier = _number(int(_K2) + 2 * length)
    if length >= 8:
        fetch = _fetcher(strings)
        a = fetch(0) + _K2
        b = fetch(-8)
        c = _rotated(b, 37) * multiplier + a
        d = (_rotated(a, 25) + b) * multiplier
        return _joined(c, d, multiplier)
    if length >= 4:
        fetch = _fetcher(strings, 4)
        first = (fetch(0) << np.uint64(3)) + np.uint64(length)
        return _joined(first, fetch(-4), multiplier)
    if length > 0:
        first, middle, last = (
            strings[:, i].astype(np.uint64) for i in (0, length // 2, length - 1)
        )
        y = first + (middle << np.uint64(8))
        z = np.uint64(length) + (last << np.uint64(2))
        return _mixed(y * _K2 ^ z * _K0) * _K2
    return np.full(len(strings), _K2)


def _start(fetch: Fetch, first: np.uint64, multiplier: np.uint64) -> tuple[Words, Words]:
    """The two words that strings of more than 16 bytes begin with."""
    a = fetch(0) * first
    b = fetch(8)
    c = fetch(-8) * multiplier
    d = fetch(-16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    return y, a + _rotated(b + _K2, 18) + c


def _hash_to_32(fetch: Fetch, length: int) -> Words:
    multiplier = _number(int(_K2) + 2 * length)
    return _joined(*_start(fetch, _K1, multiplier), multiplier)


def _hash_to_64(fetch: Fetch, length: int) -> Words:
    multiplier = _number(int(_K2) + 2 * length)
    y, second = _start(fetch, _K2, multiplier)
    z = _joined(y, second, multiplier)
    a = fetch(0) * _K2
    e = fetch(16) * multiplier
    f = fetch(24)
    g = (y + fetch(-32)) * multiplier
    h = (z + fetch(-24)) * multiplier
    return _joined(
        _rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, multiplier
    )


def _weak(fetch: Fetch, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Hash 32 bytes and two seeds."""
    w, x, y, z = (fetch(at + 8 * i) for i in range(4))
    a = a + w
    b = _rotated(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotated(a, 44) + c


def _hash_long(fetch: Fetch, length: int) -> Words:
    """Hash more than 64 bytes: whole blocks, then the last 64 bytes with another multiplier."""
    zero = np.zeros_like(fetch(0))
    y = zero + _number(_SEED * int(_K1) + 113)
    z = _mixed(y * _K2 + np.uint64(113)) * _K2
    x = fetch(0) + _number(_SEED * int(_K2))
    v, w = (zero, zero), (zero, zero)
    for at in range(0, (length - 1) // _BLOCK_BYTES * _BLOCK_BYTES, _BLOCK_BYTES):
        x = _rotated(x + y + v[0] + fetch(at + 8), 37) * _K1
        y = _rotated(y + v[1] + fetch(at + 48), 42) * _K1
        x = x ^ w[1]
        y = y + v[0] + fetch(at + 40)
        z = _rotated(z + w[0], 33) * _K1
        v = _weak(fetch, at, v[1] * _K1, x + w[0])
        w = _weak(fetch, at + 32, z + w[1], y + fetch(at + 16))
        z, x = x, z
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    at = length - _BLOCK_BYTES
    nine = np.uint64(9)
    w = (w[0] + np.uint64((length - 1) % _BLOCK_BYTES), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotated(x + y + v[0] + fetch(at + 8), 37) * multiplier
    y = _rotated(y + v[1] + fetch(at + 48), 42) * multiplier
    x = x ^ (w[1] * nine)
    y = y + v[0] * nine + fetch(at + 40)
    z = _rotated(z + w[0], 33) * multiplier
    v = _weak(fetch, at, v[1] * multiplier, x + w[0])
    w = _weak(fetch, at + 32, z + w[1], y + fetch(at + 16))
    z, x = x, z
    return _joined(
        _joined(v[0], w[0], multiplier) + _mixed(y) * _K0 + z,
        _joined(v[1], w[1], multiplier) + x,
        multiplier,
    )
