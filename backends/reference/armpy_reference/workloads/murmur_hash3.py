"""CpuRef's MurmurHash3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.strings import encoded
from armpy.ops import MurmurHash3
from armpy.ops.operation import Array
from armpy_reference.stopping import stop_check
from armpy_reference.workload import ReferenceWorkload

Words = npt.NDArray[np.uint32]

_WORD_BYTES = 4


class MurmurHash3Workload(ReferenceWorkload[MurmurHash3]):
    """Hash elements of as many bytes at once."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Signed outputs have the bits of unsigned ones."""
        check, elements = stop_check(), inputs[0].reshape(-1)
        hashes = np.empty(elements.shape, np.uint32)
        if elements.dtype.hasobject:
            keys = [encoded(text) for text in elements.tolist()]
            numbers = defaultdict(list)
            for number, key in enumerate(keys):
                numbers[len(key)].append(number)
            for length, group in numbers.items():
                joined = b"".join(keys[number] for number in group)
                rows = np.frombuffer(joined, np.uint8).reshape(len(group), length)
                hashes[group] = _hashes(rows, self.operation.seed, check)
        else:
            stored = np.ascontiguousarray(elements).view(np.uint8)
            rows = stored.reshape(elements.size, elements.itemsize)
            hashes[:] = _hashes(rows, self.operation.seed, check)
        outputs[0].reshape(-1)[...] = hashes.view(outputs[0].dtype)


def _hashes(
    keys: npt.NDArray[np.uint8],  # (keys, bytes)
    seed: int,
    check: Callable[[], None],
) -> Words:
    """Hash each key, modulo 2**32."""
    count, length = keys.shape
    # Zeros at the end make whole words; the length is mixed in.
    num_words = -(-length // _WORD_BYTES)
    padded = np.zeros((count, num_words * _WORD_BYTES), np.uint8)
    padded[:, :length] = keys
    words = padded.view("<u4").astype(np.uint32)
    hashes = np.full(count, seed, np.uint32)
    for number in range(num_words):
        check()
        hashes ^= _rotated(words[:, number] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        if (number + 1) * _WORD_BYTES <= length:
            hashes = _rotated(hashes, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashes ^= np.uint32(length)
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    return hashes


def _rotated(words: Words, bits: int) -> Words:
    """Words rotated to the left."""
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
