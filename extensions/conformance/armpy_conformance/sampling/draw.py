"""Random choices that a seed repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np

Item = TypeVar("Item")
Shape: TypeAlias = tuple[int, ...]


class Draw:
    """Random choices that a seed repeats.

    Parameters
    ----------
    seed : int or sequence of int
        0 or more.
    rank : int, optional
        Of all shapes whose rank is not given; drawn each time if left out.
    """

    def __init__(self, seed: int | Sequence[int], rank: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self._rank = rank

    def size(self, highest: int = 4, lowest: int = 1) -> int:
        """A number from `lowest` to `highest`."""
        return int(self.rng.integers(lowest, highest + 1))

    def chance(self, probability: float = 0.5) -> bool:
        """Return whether something with this probability happens."""
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence[Item]) -> Item:
        """One of them."""
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: float, high: float) -> float:
        """A number that float16 has."""
        return float(np.float16(self.rng.uniform(low, high)))

    def shape(self, rank: int | None = None, highest: int = 4, lowest: int = 1) -> Shape:
        """Dimensions; of rank 1 to 4 if it is not given."""
        rank = self._rank if rank is None else rank
        count = self.size(4) if rank is None else rank
        return tuple(self.size(highest, lowest) for _ in range(count))

    def permutation(self, count: int) -> list[int]:
        """The numbers below `count` in some order."""
        return [int(i) for i in self.rng.permutation(count)]

    def broadcast_shapes(self, count: int = 2) -> tuple[Shape, ...]:
        """Shapes that broadcast, one of them perhaps of fewer dimensions."""
        full = self.shape()
        shapes = [tuple(1 if self.chance(0.25) else dim for dim in full) for _ in range(count)]
        short = self.size(len(full), 0)
        shapes[self.size(count - 1, 0)] = shapes[0][min(short, len(full) - 1) :]
        return tuple(shapes)

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.size(rank - 1, -rank)

    def pairs(self, count: int, most: int = 3) -> tuple[tuple[int, int], ...]:
        """Numbers of elements in front of axes and after them."""
        return tuple((self.size(most, 0), self.size(most, 0)) for _ in range(count))
