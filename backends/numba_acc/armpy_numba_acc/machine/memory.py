"""Memory of commands: buffers, and addresses within them."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.space import Space


@dataclass(eq=False, slots=True)
class Buffer:
    """Some bytes that commands read or write."""

    space: Space
    size_bytes: int
    tensor: int = 0  # which of the program's tensors it is, inputs first, where `space` is TENSORS
    offset: int = 0  # within the arena or the constants
    # Numbers of the first and the last command that touch it, where it is in the arena.
    first: int = -1
    last: int = -1
    # The one that it is a part of; `offset` counts from its beginning then.
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
        """Return where it begins within the arena, the constants or the tensor."""
        return self.offset + (0 if self.whole is None else self.whole.start)

    @property
    def root(self) -> Buffer:
        """The one that it is a part of in the end, or itself."""
        return self if self.whole is None else self.whole.root

    def at(self, offset_bytes: int) -> Address:
        """An address within it."""
        return Address(self, offset_bytes)

    def __add__(self, offset_bytes: int) -> Address:
        return self.at(offset_bytes)


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a buffer."""

    buffer: Buffer
    offset_bytes: int = 0

    def __add__(self, offset_bytes: int) -> Address:
        return Address(self.buffer, self.offset_bytes + offset_bytes)
