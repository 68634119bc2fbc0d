"""Random numbers by counting: Philox 4x32-10 and Threefry 2x32-20.

References
----------
Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_PARITY = np.uint64(0x1BD11BDA)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_ROUNDS = 20
_KEY_STEPS = np.array([0x9E3779B9, 0xBB67AE85], np.uint64)


def philox_words(
    key: npt.NDArray[np.uint64], counters: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Blocks of four random words.

    Parameters
    ----------
    key : ndarray, uint64, shape (2,)
    counters : ndarray, uint64, shape (blocks, 4)

    Returns
    -------
    ndarray, uint64, shape (blocks, 4)
        Words of 32 bits, as those of the key and the counters.
    """
    words = counters.copy()
    for _ in range(_ROUNDS):
        products = words[:, ::2] * _MULTIPLIERS
        high, low = products >> _HALF, products & _LOW
        # Each product's halves go to the other pair of words.
        words[:, ::2] = high[:, ::-1] ^ words[:, 1::2] ^ key
        words[:, 1::2] = low[:, ::-1]
        key = (key + _KEY_STEPS) & _LOW
    return words


def philox_uniform(seed: int, stream: int, count: int) -> npt.NDArray[np.float64]:
    """Random numbers of at least 0 and below 1, with 52 bits, two words each.

    Parameters
    ----------
    seed
        The key, of 64 bits.
    stream
        The upper 64 bits of the counters; the lower ones count the blocks.

    Returns
    -------
    ndarray, float64, shape (count,)
    """
    words = _words(seed, stream, 2 * count).reshape(-1, 2)
    mantissas = ((words[:, 0] & np.uint64(0xFFFFF)) << _HALF) | words[:, 1]
    return mantissas.astype(np.float64) * 2.0**-52


def philox_uniform_singles(seed: int, stream: int, count: int) -> npt.NDArray[np.float32]:
    """Uniform numbers as of `philox_uniform` with 23 bits, one word each."""
    words = _words(seed, stream, count)
    return (words & np.uint64(0x7FFFFF)).astype(np.float32) * np.float32(2.0**-23)


def philox_normal(
    seed: int, stream: int, count: int, dtype: np.dtype[np.generic]
) -> npt.NDArray[np.floating]:
    """Random numbers of a standard normal distribution, in pairs of uniform ones.

    Reference: TensorFlow ``random_distributions.h``, ``BoxMullerFloat`` and ``BoxMullerDouble``.
    """
    draw = philox_uniform_singles if dtype == np.float32 else philox_uniform
    pairs = draw(seed, stream, count + count % 2).reshape(-1, 2)
    number = pairs.dtype.type
    radius = np.sqrt(number(-2) * np.log(np.maximum(pairs[:, 0], number(1e-7))))
    angle = number(2 * np.pi) * pairs[:, 1]
    normal = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)
    return normal.reshape(-1)[:count]


def threefry_words(
    key: npt.NDArray[np.uint64], counters: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Blocks of two random words: Threefry 2x32-20.

    Parameters
    ----------
    key : ndarray, uint64, shape (2,)
    counters : ndarray, uint64, shape (blocks, 2)

    Returns
    -------
    ndarray, uint64, shape (blocks, 2)
        Words of 32 bits, as those of the key and the counters.
    """
    keys = [key[0], key[1], key[0] ^ key[1] ^ _PARITY]
    first, second = (counters[:, 0] + key[0]) & _LOW, (counters[:, 1] + key[1]) & _LOW
    for group in range(_THREEFRY_ROUNDS // 4):
        for distance in _ROTATIONS[group % 2]:
            first = (first + second) & _LOW
            far = np.uint64(32 - distance)
            second = ((second << np.uint64(distance)) | (second >> far)) & _LOW
            second ^= first
        first = (first + keys[(group + 1) % 3]) & _LOW
        second = (second + keys[(group + 2) % 3] + np.uint64(group + 1)) & _LOW
    return np.stack([first, second], axis=1)


def seeds_of(seed: int, stream: int) -> tuple[int, int]:
    """The seeds; random ones for two of 0."""
    if seed or stream:
        return seed, stream
    return secrets.randbits(_SEED_BITS), secrets.randbits(_SEED_BITS)


_SEED_BITS = 64


def _words(seed: int, stream: int, count: int) -> npt.NDArray[np.uint64]:
    """Random words of 32 bits, of blocks that are counted from 0."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    counters = np.empty((len(blocks), 4), np.uint64)
    counters[:, 0], counters[:, 1] = blocks & _LOW, blocks >> _HALF
    counters[:, 2:] = _halves(stream)
    return philox_words(_halves(seed), counters).reshape(-1)[:count]


def _halves(number: int) -> npt.NDArray[np.uint64]:
    """Lower and upper word of a 64-bit number."""
    return np.array([number & 0xFFFFFFFF, (number >> 32) & 0xFFFFFFFF], np.uint64)
