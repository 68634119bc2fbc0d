"""Turns: locks that one thread takes without waiting, and another may give back."""

from __future__ import annotations


class Turn:
    """A lock that is taken without waiting.

    Notes
    -----
    In contrast to a lock of `threading`, threads do not wait for it, and another thread may give it
    back than the one that has taken it: an execution that was started ends on a thread of the
    runtime's.

    Attributes
    ----------
    tokens : list of None
        The one item to take out. Where a call counts, it is taken out and put back directly.
    """

    __slots__ = ("tokens",)

    def __init__(self) -> None:
        # To take the one item out of a list is a single step of the interpreter, so of several
        # threads one gets it. It takes a third of the time of a lock.
        self.tokens: list[None] = [None]

    @property
    def is_free(self) -> bool:
        """True if it is not taken."""
        return bool(self.tokens)

    def take(self) -> bool:
        """Take the turn if it is free; returns whether it was."""
        try:
            self.tokens.pop()
        except IndexError:
            return False
        return True

    def give_back(self) -> None:
        """Let the next one take it."""
        self.tokens.append(None)
