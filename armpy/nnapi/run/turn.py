"""Turns: what one thread at a time takes, and gives back."""

from __future__ import annotations


class Turn:
    """A turn that one thread at a time takes.

    Notes
    -----
    In contrast to a lock of `threading`, nobody waits for it, and another thread may give it back
    than the one that has taken it: an execution that was started ends on a thread of the runtime's.
    """

    __slots__ = ("_free",)

    def __init__(self) -> None:
        # To take the one item out of a list is a single step of the interpreter, so of several
        # threads one gets it. It takes a third of the time of a lock.
        self._free: list[None] = [None]

    @property
    def is_free(self) -> bool:
        """Whether nobody has it now."""
        return bool(self._free)

    def take(self) -> bool:
        """Take it if it is free; whether it was."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def give_back(self) -> None:
        """Let the next one take it."""
        self._free.append(None)
