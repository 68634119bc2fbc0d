"""Memory of a program: buffers, where they are, and the arena that they share."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from armpy.records import dataclass

ALIGNMENT_BYTES = 64
"""Of every buffer in the arena and among the constants."""


class Space(enum.IntEnum):
    """What a buffer is a part of; TENSORS is followed by those of the program."""

    FAILURE = -2
    NUMBER = -1
    ARENA = 0
    CONSTANTS = 1
    TENSORS = 2


@dataclass(eq=False, slots=True)
class Buffer:
    """Some bytes that commands read or write.

    Parameters
    ----------
    space : Space
    size_bytes : int
    tensor : int
        Which of the program's tensors it is, inputs first, where `space` is TENSORS.
    offset : int
        Within the arena or the constants.
    first, last : int
        Numbers of the first and the last command that touch it, where it is in the arena.
    whole : Buffer, optional
        The one that it is a part of; `offset` counts from its beginning then.
    """

    space: Space
    size_bytes: int
    tensor: int = 0
    offset: int = 0
    first: int = -1
    last: int = -1
    whole: Buffer | None = None

    def touch(self, command: int) -> None:
        """Say that a command reads or writes it."""
        self.first = command if self.first < 0 else min(self.first, command)
        self.last = max(self.last, command)
        if self.whole is not None:
            self.whole.touch(command)

    def part(self, offset_bytes: int, size_bytes: int) -> Buffer:
        """Some of its bytes."""
        return Buffer(self.space, size_bytes, self.tensor, offset_bytes, whole=self)

    @property
    def start(self) -> int:
        """Where it begins within the arena, the constants or the tensor."""
        return self.offset + (0 if self.whole is None else self.whole.start)

    def at(self, offset_bytes: int) -> Address:
        """An address within it."""
        return Address(self, offset_bytes)


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a buffer."""

    buffer: Buffer
    offset_bytes: int = 0


def plan_arena(buffers: Sequence[Buffer]) -> int:
    """Place buffers so that those that live at the same time do not overlap.

    Parameters
    ----------
    buffers : sequence of Buffer
        Of the arena; their offsets are set.

    Returns
    -------
    int
        Bytes that the arena needs.

    References
    ----------
    Pisarchyk, Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (greedy
    by size).
    """
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda b: -b.size_bytes):
        if buffer.first < 0:
            continue
        offset = 0
        for other in sorted(placed, key=lambda b: b.offset):
            if other.last < buffer.first or buffer.last < other.first:
                continue
            if offset + buffer.size_bytes <= other.offset:
                break
            offset = max(offset, _aligned(_end(other)))
        buffer.offset = offset
        placed.append(buffer)
        total = max(total, offset + buffer.size_bytes)
    return _aligned(total)


_PAGE_BYTES = 4096
_STEP_BYTES = 320
"""By how much large buffers are moved against each other within a page."""


def _end(buffer: Buffer) -> int:
    """Where the next buffer may begin.

    Notes
    -----
    Large buffers are often as long as whole pages. If they began at the same place of a page, or
    a little behind it, what a command reads and what it writes would share few lines of the
    cache: depthwise convolutions take up to twice as long then.
    """
    end = buffer.offset + buffer.size_bytes
    if buffer.size_bytes < 8 * _PAGE_BYTES:
        return end
    size = -(-buffer.size_bytes // _PAGE_BYTES) * _PAGE_BYTES
    return buffer.offset + size + _STEP_BYTES


def _aligned(offset: int) -> int:
    """The next offset that a buffer may have."""
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
