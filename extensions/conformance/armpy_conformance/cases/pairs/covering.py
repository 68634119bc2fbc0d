"""Covering arrays: rows in which every pair of values of any two factors occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

import numpy as np

Made = TypeVar("Made")
Row: TypeAlias = Mapping[str, str]
"""Name of one value of each factor."""

_TRIES = 12
"""Rows that are tried for a pair of values before these are taken to exclude each other."""

_MOST_MADE = 5
"""Of these, how many something is made of."""

_GREEDY = 2
"""Tries of which each takes the values that complete most pairs; then come usual values."""


def covering(
    factors: Mapping[str, Sequence[str]],
    make: Callable[[Row], Made | None],
    centre: str = "",
    allows: Callable[[Row], bool] = lambda _: True,
) -> Iterator[Made]:
    """Yield what is made of rows in which every possible pair of values occurs.

    Parameters
    ----------
    factors : dict of str to sequence of str
        Names of each factor's values.
    make : callable
        Makes something of a row; None if some of its values exclude each other.
    centre : str, optional
        A factor: only pairs with its values have to occur.
    allows : callable, optional
        Whether values go together, where that can be said without making anything of them.

    Notes
    -----
    Greedy: each row begins with a pair that is still missing, and takes the values that complete
    most others. The same factors give the same rows.
    """
    open_pairs = _OpenPairs(factors, centre)
    while (pair := open_pairs.first()) is not None:
        rows = (open_pairs.row_with(pair, number) for number in range(_TRIES))
        allowed = (indices for indices in rows if allows(open_pairs.names(indices)))
        for indices in islice(allowed, _MOST_MADE):
            made = make(open_pairs.names(indices))
            if made is not None:
                open_pairs.close(indices)
                yield made
                break
        else:
            open_pairs.close(pair)


class _OpenPairs:
    """The pairs of values that no row has yet: for each value a set of bits, one for each other.

    Notes
    -----
    A value and itself count as a pair, so that each value occurs where there is one factor.
    """

    def __init__(self, factors: Mapping[str, Sequence[str]], centre: str) -> None:
        self._factors = list(factors)
        self._values = [value for values in factors.values() for value in values]
        self._blocks: list[range] = []  # numbers of each factor's values
        for values in factors.values():
            start = self._blocks[-1].stop if self._blocks else 0
            self._blocks.append(range(start, start + len(values)))
        self._factor_of = [factor for factor, block in enumerate(self._blocks) for _ in block]
        everything = _bits(range(len(self._values)))
        self._open: list[int] = []
        for value, factor in enumerate(self._factor_of):
            if centre and self._factors[factor] != centre:
                self._open.append(_bits(self._blocks[self._factors.index(centre)]))
            else:
                self._open.append(everything & ~_bits(self._blocks[factor]) | 1 << value)
        self._rng = np.random.default_rng(0)

    def first(self) -> tuple[int, ...] | None:
        """The next pair of values that no row has; None if there is none."""
        value = next((value for value, others in enumerate(self._open) if others), None)
        if value is None:
            return None
        others = self._open[value]
        return value, (others & -others).bit_length() - 1

    def row_with(self, pair: Sequence[int], number: int) -> tuple[int, ...]:
        """One value of each factor, those of a pair among them.

        Parameters
        ----------
        number : int
            Of the try: after the greedy ones a factor's first value, which goes with most others,
            is as likely as all others together.
        """
        chosen = list(dict.fromkeys(pair))
        taken = {self._factor_of[index] for index in chosen}
        for factor in self._rng.permutation(len(self._factors)):
            if factor in taken:
                continue
            block = self._blocks[factor]
            gains = self._rng.random(len(block)).tolist()  # decides between equal ones
            if number < _GREEDY:
                row = _bits(chosen)
                counts = ((self._open[value] & row).bit_count() for value in block)
                gains = [gain + count for gain, count in zip(gains, counts, strict=True)]
            elif number == _GREEDY or self._rng.random() < 0.5:
                gains[0] = 1.0
            chosen.append(block[gains.index(max(gains))])
        return tuple(chosen)

    def names(self, indices: Sequence[int]) -> Row:
        """A row's values by factor, in the order of the factors."""
        ordered = sorted(indices)
        return {self._factors[self._factor_of[i]]: self._values[i] for i in ordered}

    def close(self, indices: Sequence[int]) -> None:
        """Note that a row has these values, or that they exclude each other."""
        row = _bits(indices)
        for value in indices:
            self._open[value] &= ~row


def _bits(values: Iterable[int]) -> int:
    """A set of values as bits."""
    bits = 0
    for value in values:
        bits |= 1 << value
    return bits
