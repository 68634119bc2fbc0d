"""Memory of text: what the strings of an execution take, counted before they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy.typing as npt

from armpy.errors import MemoryQuotaError

REFERENCE_BYTES = 8
"""Size of an element of an array of strings."""

STRING_BYTES = 56
"""Size of a string without its characters."""

LARGEST_CHARACTER_BYTES = 4
"""Size of each character of a string in which one needs so much."""


def text_bytes(*parts: str | bytes) -> int:
    """Most memory of a string of some parts, or of their UTF-8, besides the reference to it."""
    is_ascii = all(part.isascii() for part in parts)
    return STRING_BYTES + sum(map(len, parts)) * (1 if is_ascii else LARGEST_CHARACTER_BYTES)


def held_bytes(array: npt.NDArray[Any]) -> int:  # Any: of every type
    """Memory of an array's elements, strings included; of other objects, the references."""
    if not array.dtype.hasobject:
        return array.nbytes
    elements = array.reshape(-1).tolist()
    return array.nbytes + sum(text_bytes(e) for e in elements if isinstance(e, (str, bytes)))


class TextMemory:
    """Memory of the text that an execution holds: the latest of each of its layers."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[object, int] = {}
        self._total_bytes = 0

    def hold(self, layer: object, size_bytes: int) -> None:
        """Count text that a layer is about to make, in place of what it made before.

        Raises MemoryQuotaError if all text together is larger than the limit.
        """
        total_bytes = self._total_bytes - self._held.get(layer, 0) + size_bytes
        if total_bytes > self._limit_bytes:
            raise MemoryQuotaError(
                "the text of one execution needs too much memory",
                expected=f"at most {self._limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{total_bytes} bytes or more",
            )
        self._held[layer], self._total_bytes = size_bytes, total_bytes


_current: ContextVar[TextMemory | None] = ContextVar("text_memory", default=None)


@contextmanager
def limited_text(limit_bytes: int) -> Iterator[None]:
    """Limit the text of what is executed in a block."""
    token = _current.set(TextMemory(limit_bytes))
    try:
        yield
    finally:
        _current.reset(token)


class GrowingText:
    """Text that a layer makes piece by piece, counted before each."""

    def __init__(self, layer: object) -> None:
        self._layer = layer
        self._memory = _current.get()
        self._size_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count a piece; raises MemoryQuotaError as `TextMemory.hold`."""
        self._size_bytes += size_bytes
        if self._memory is not None:
            self._memory.hold(self._layer, self._size_bytes)
