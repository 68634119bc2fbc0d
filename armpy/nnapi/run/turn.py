"""Turns: locks that one thread takes without waiting, and another may give back."""

from __future__ import annotations


class Turn:
    """A lock that is taken without waiting.

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
        """Take the turn if it is free; returns whether it was."""
        try:
            self._free.pop()
        except IndexError:
            return False
        return True

    def give_back(self) -> None:
        """Let the next one take it."""
        self._free.append(None)
