"""Overlaps of lifetimes, and placement by them, without a look at every pair."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush

Lifetime = tuple[int, int]
"""First and last step, both inclusive."""

FEW_PAIRS = 1 << 18
FEW_PAIRS_EACH = 32
"""Number of pairs, in all or for each lifetime, up to which they are looked at one by one."""


def neighbours(lifetimes: Sequence[Lifetime]) -> list[list[int]] | None:
    """Map each lifetime to the numbers of those that share a step with it.

    A sweep over the steps: n log n, and one step more for each pair.

    Returns None if there are too many pairs: more than `FEW_PAIRS`, and than `FEW_PAIRS_EACH` for
    each lifetime. What places things has to do with `place_in_order` then.
    """
    allowed = max(FEW_PAIRS, FEW_PAIRS_EACH * len(lifetimes))
    pairs: list[list[int]] = [[] for _ in lifetimes]
    # A heap of ends: those that are over stand in front.
    living: list[tuple[int, int]] = []
    for number in sorted(range(len(lifetimes)), key=lambda n: lifetimes[n][0]):
        start, end = lifetimes[number]
        while living and living[0][0] < start:
            heappop(living)
        allowed -= len(living)
        if allowed < 0:
            return None
        for _, other in living:
            pairs[number].append(other)
            pairs[other].append(number)
        heappush(living, (end, number))
    return pairs


def place_in_order(lifetimes: Sequence[Lifetime], sizes: Sequence[int]) -> list[int]:
    """Offsets at which nothing that lives at the same time overlaps, given in order of time.

    Each takes the smallest gap that fits when its lifetime begins, as an allocator would that
    does not know what comes: n log n, however much lives at the same time.

    Offsets are multiples of what all sizes are multiples of.
    """
    offsets = [0] * len(lifetimes)
    gaps = _Gaps()
    living: list[tuple[int, int]] = []
    # Of those that begin together the largest first: smaller ones fit the rest.
    for number in sorted(range(len(lifetimes)), key=lambda n: (lifetimes[n][0], -sizes[n])):
        start, end = lifetimes[number]
        while living and living[0][0] < start:
            _, ended = heappop(living)
            gaps.give_back(offsets[ended], sizes[ended])
        # A tensor without bytes can lie anywhere.
        if sizes[number]:
            offsets[number] = gaps.take(sizes[number])
            heappush(living, (end, number))
    return offsets


class _Gaps:
    """Free gaps below the end of the memory used so far."""

    def __init__(self) -> None:
        self._end = 0
        # The same gaps three times: by size to find one, by either end to join it with others.
        self._by_size: list[tuple[int, int]] = []
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def take(self, size: int) -> int:
        """Offset of the smallest gap that fits; the last gap grows if none does."""
        index = bisect_left(self._by_size, (size, 0))
        if index < len(self._by_size):
            room, offset = self._by_size[index]
            self._remove(offset, offset + room)
            if room > size:
                self._add(offset + size, offset + room)
            return offset
        # A gap at the very end is the only one that can grow.
        offset = self._ends.get(self._end, self._end)
        if offset < self._end:
            self._remove(offset, self._end)
        self._end = offset + size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """Free some bytes, and join them with the gaps beside them."""
        begin, end = offset, offset + size
        if begin in self._ends:
            begin = self._ends[begin]
            self._remove(begin, offset)
        if end in self._begins:
            following = self._begins[end]
            self._remove(end, following)
            end = following
        self._add(begin, end)

    def _add(self, begin: int, end: int) -> None:
        """Note a gap."""
        insort(self._by_size, (end - begin, begin))
        self._begins[begin] = end
        self._ends[end] = begin

    def _remove(self, begin: int, end: int) -> None:
        """Forget a gap."""
        del self._by_size[bisect_left(self._by_size, (end - begin, begin))]
        del self._begins[begin], self._ends[end]
