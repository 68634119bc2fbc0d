"""Index of words among packed bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.store.archive.packed_views import Bytes

Integers: TypeAlias = "npt.NDArray[np.int64]"
Unsigned: TypeAlias = "npt.NDArray[np.uint32]"

_LOW = np.uint64(0xFFFFFFFF)


class WordIndex:
    """All aligned words of four bytes, sorted.

    Parameters
    ----------
    blob : ndarray, uint8, shape (bytes,)
    """

    def __init__(self, blob: Bytes) -> None:
        self.blob = blob
        words = blob[: len(blob) // 4 * 4].view("<u4")
        # Word and place in one number: one sort, and places of equal words are in order.
        keys = words.astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(words), dtype=np.uint64)
        keys.sort()
        self._words, self._keys = words, keys

    def has(self, words: Unsigned) -> npt.NDArray[np.bool_]:
        """Which words there are at all."""
        return self.places(words, 1)[..., 0] >= 0

    def places(self, words: Unsigned, most: int, low: int = 0, high: int | None = None) -> Integers:
        """Where words lie within a range of bytes, the first ones of each.

        Parameters
        ----------
        words : ndarray, uint32, shape (...)
        most : int
        low, high : int, optional

        Returns
        -------
        ndarray, int64, shape (..., most)
            Ascending; -1 where there are no more.
        """
        if not len(self._keys):
            return np.full((*words.shape, most), -1, np.int64)
        wanted = words.astype(np.uint64)[..., None]
        first = np.uint64(max(0, low) // 4)
        starts = np.searchsorted(self._keys, wanted << np.uint64(32) | first)
        numbers = np.minimum(starts + np.arange(most), len(self._keys) - 1)
        keys = self._keys[numbers]
        places: Any = (keys & _LOW).astype(np.int64) * 4
        is_there = (keys >> np.uint64(32) == wanted) & (starts + np.arange(most) < len(self._keys))
        if high is not None:
            is_there &= places < high
        return np.where(is_there, places, -1)

    def at(self, places: Integers) -> Unsigned:
        """The words at some places; 0 where there are none."""
        numbers = places // 4
        is_there = (numbers >= 0) & (numbers < len(self._words)) & (places % 4 == 0)
        return np.where(is_there, self._words[np.where(is_there, numbers, 0)], np.uint32(0))
