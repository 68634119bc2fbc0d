"""Turns: several things measured beside each other, so that what else a machine does is shared."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name")
Found = TypeVar("Found")

Clock = Callable[[], float]
"""Seconds that have passed."""


def take_turns(
    # Each takes a turn and returns a property of it, such as `timed` its seconds.
    turns: Mapping[Name, Callable[[], Found]],
    seconds: float,  # how long together, about: no round begins later
    *,
    # `least` and `most`: numbers of rounds.
    least: int = 5,
    most: int = 1000,
    clock: Clock = time.perf_counter,
) -> dict[Name, list[Found]]:
    """Let several things take turns, each once in every round.

    The order of a round is random, and that of the next one its opposite: what changes with time
    falls on all alike.

    Returns what each has found in its turns, round by round.
    """
    results: dict[Name, list[Found]] = {name: [] for name in turns}
    until = clock() + seconds
    for number, order in enumerate(orders(list(turns))):
        if not turns or number >= most or (number >= least and clock() >= until):
            break
        for name in order:
            results[name].append(turns[name]())
    return results


def orders(names: Sequence[Name], source: random.Random | None = None) -> Iterator[list[Name]]:
    """Orders of turns without end: a random one, its opposite, and so on."""
    # Seeded, so that runs can be compared.
    source = source or random.Random(0)
    while True:
        order = source.sample(names, len(names))
        yield order
        yield order[::-1]


def timed(
    call: Callable[[], object], count: int = 1, clock: Clock = time.perf_counter
) -> Callable[[], float]:
    """A turn that calls so many times, and finds the seconds of one call."""

    def turn() -> float:
        began = clock()
        for _ in range(count):
            call()
        return (clock() - began) / count

    return turn
