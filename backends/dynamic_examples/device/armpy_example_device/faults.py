"""Faults of the simulated device, on command."""

from __future__ import annotations

import threading

from armpy.errors import InvalidArgumentError

KINDS = ("out_of_memory", "fail", "hang", "slow", "wrong")
"""An allocation without memory; a command that fails, never ends, takes 0.2 s longer, lies."""


class Faults:
    """The faults that are still to come.

    Parameters
    ----------
    text : str
        Kinds with commas between them: ``hang`` is every command from now on, ``hang:3`` the
        third one alone. ``out_of_memory`` counts allocations.

    Raises
    ------
    InvalidArgumentError
        If there is no such kind.
    """

    def __init__(self, text: str = "") -> None:
        self._lock = threading.Lock()
        self._coming: list[tuple[str, int]] = []
        self.add(text)

    def add(self, text: str) -> None:
        """Add more; parameters and errors as for the class."""
        for part in filter(None, (part.strip() for part in text.split(","))):
            kind, _, number = part.partition(":")
            if kind not in KINDS or not (number or "1").isdecimal() or number == "0":
                raise InvalidArgumentError(
                    "the device has no such fault",
                    where="faults",
                    expected=f"{', '.join(KINDS)}, followed by a colon and the number",
                    actual=repr(part),
                )
            with self._lock:
                self._coming.append((kind, int(number or 0)))

    def clear(self) -> None:
        """Work properly from now on."""
        with self._lock:
            self._coming.clear()

    def take(self, kind: str) -> bool:
        """Whether something that such a fault is about goes wrong; called once for each."""
        is_wrong = False
        with self._lock:
            left = []
            for other, number in self._coming:
                is_its_turn = other == kind and number <= 1
                is_wrong |= is_its_turn
                if not (is_its_turn and number):
                    left.append((other, number - 1 if other == kind and number else number))
            self._coming = left
        return is_wrong
