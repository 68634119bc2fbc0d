"""Random numbers that are a string of bytes: a fuzzer that changes bytes changes choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from armpy_nnapi.conformance.random_graphs.generator import RandomModel, drawn_model

_SEED_BYTES = 8
_BYTES_OF_A_REAL = 2


class ByteRandom(np.random.Generator):
    """A generator whose single numbers are read from bytes.

    Parameters
    ----------
    data : bytes
        The first eight are the seed of all arrays of elements, and of the draws when the others
        are used up.

    Notes
    -----
    A byte decides one choice (an operation, a rank, a dimension), so that inputs which differ in a
    byte make models that differ in little.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(np.random.PCG64(int.from_bytes(data[:_SEED_BYTES], "little")))
        self._left = data[_SEED_BYTES:]

    def _take(self, count: int) -> int | None:
        """The number that some bytes make; None if there are not as many."""
        if len(self._left) < count:
            self._left = b""
            return None
        data, self._left = self._left[:count], self._left[count:]
        return int.from_bytes(data, "little")

    # Any: the base class takes arrays and scalars of many types, and gives either
    def integers(  # type: ignore[override]  # overloads by type
        self, low: Any, high: Any = None, size: Any = None, **rest: Any
    ) -> Any:
        """Random integers; a single one of few choices takes one byte."""
        if size is not None or np.ndim(low) or np.ndim(high):
            return super().integers(low, high, size, **rest)
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        span = last - first + bool(rest.get("endpoint"))
        number = self._take(max((span - 1).bit_length() + 7 >> 3, 1)) if span > 0 else None
        return super().integers(low, high, **rest) if number is None else first + number % span

    def random(self, size: Any = None, *args: Any, **rest: Any) -> Any:
        """Random numbers from 0 to 1; a single one takes two bytes."""
        number = self._take(_BYTES_OF_A_REAL) if size is None else None
        if number is None:
            return super().random(size, *args, **rest)
        return number / (1 << 8 * _BYTES_OF_A_REAL)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform random numbers; a single one takes two bytes."""
        if size is not None or np.ndim(low) or np.ndim(high):
            return super().uniform(low, high, size)
        return low + (high - low) * self.random()

    def choice(self, a: Any, size: Any = None, *args: Any, **rest: Any) -> Any:
        """Random choices; a single one takes one byte or two."""
        weights = rest.get("p")
        if size is not None or args or np.ndim(a) != 1:
            return super().choice(a, size, *args, **rest)
        if weights is None:
            return np.asarray(a)[self.integers(len(a))]
        index = int(np.searchsorted(np.cumsum(weights), self.random(), side="right"))
        return np.asarray(a)[min(index, len(a) - 1)]


def model_of_bytes(data: bytes) -> RandomModel:
    """The model that bytes stand for; every string of bytes stands for one."""
    return drawn_model(ByteRandom(data), int.from_bytes(data[:_SEED_BYTES], "little"))
