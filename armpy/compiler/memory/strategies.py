"""The memory strategies that come with armpy, and the check of anybody's."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from armpy.backend import ALIGNMENT_BYTES, IMemoryOptimizerStrategy, MemBin, MemBlock, PackingType
from armpy.backend.memory.memory import rounded_up
from armpy.core.arguments import check_choice
from armpy.core.lifetimes import neighbours, place_in_order
from armpy.errors import MemoryValidationError
from armpy.plugins.proxy.guarded_call import ask_backend, read_backend


class GreedyBySize(IMemoryOptimizerStrategy):
    """One bin; the largest blocks first, each into the smallest gap that fits.

    References
    ----------
    Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
    algorithm 3.
    """

    @property
    def name(self) -> str:
        """``"GreedyBySize"``, the default."""
        return "GreedyBySize"

    @property
    def packing_type(self) -> PackingType:
        """Blocks that live together lie side by side."""
        return PackingType.MULTI_AXIS

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """Offsets are multiples of `ALIGNMENT_BYTES`.

        Where too many blocks live together to look at all pairs (see `neighbours`), they are
        placed in order of time, each into the smallest gap that fits.
        """
        if not blocks:
            return []
        sizes = [rounded_up(block.size_bytes, ALIGNMENT_BYTES) for block in blocks]
        lifetimes = [(block.start, block.end) for block in blocks]
        near = neighbours(lifetimes)
        if near is None:
            offsets = place_in_order(lifetimes, sizes)
        else:
            order = sorted(
                range(len(blocks)),
                # Equal sizes go by time and number: a model has one plan in all processes.
                key=lambda n: (-blocks[n].size_bytes, blocks[n].start, blocks[n].index),
            )
            offsets = _by_size(order, near, sizes)
        placed = [replace(b, offset=offset) for b, offset in zip(blocks, offsets, strict=True)]
        placed.sort(key=lambda b: b.offset)
        total = max(offset + size for offset, size in zip(offsets, sizes, strict=True))
        return [MemBin(tuple(placed), total)]


def _by_size(
    order: Iterable[int], near: Sequence[Sequence[int]], sizes: Sequence[int]
) -> list[int]:
    """Offsets of blocks that are placed in an order, each into the smallest gap that fits."""
    offsets = [-1] * len(sizes)
    for number in order:
        # Only blocks that share a step count: all others may have the same bytes.
        placed = sorted((offsets[n], sizes[n]) for n in near[number] if offsets[n] >= 0)
        offsets[number] = _smallest_gap(placed, sizes[number])
    return offsets


def _smallest_gap(placed: Iterable[tuple[int, int]], size: int) -> int:
    """Offset of the smallest gap among blocks, given as offset and size in order."""
    best, best_room = None, None
    end_so_far = 0
    for offset, other in placed:
        room = offset - end_so_far
        if room >= size and (best_room is None or room < best_room):
            best, best_room = end_so_far, room
        end_so_far = max(end_so_far, offset + other)
    return end_so_far if best is None else best


class ConstantMemoryStrategy(IMemoryOptimizerStrategy):
    """A bin of its own for every block: no reuse.

    References
    ----------
    Arm NN ConstantMemoryStrategy.
    """

    @property
    def name(self) -> str:
        """``"ConstantMemoryStrategy"``."""
        return "ConstantMemoryStrategy"

    @property
    def packing_type(self) -> PackingType:
        """One block per bin."""
        return PackingType.SINGLE_AXIS

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """One bin per block."""
        return [MemBin((block,), block.size_bytes) for block in blocks]


class SingleAxisPriorityList(IMemoryOptimizerStrategy):
    """Large blocks first, each into the first bin whose blocks never live at the same time.

    References
    ----------
    Arm NN SingleAxisPriorityList.
    """

    @property
    def name(self) -> str:
        """``"SingleAxisPriorityList"``."""
        return "SingleAxisPriorityList"

    @property
    def packing_type(self) -> PackingType:
        """Blocks of one bin never live together."""
        return PackingType.SINGLE_AXIS

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """A bin is as large as its largest block."""
        lifetimes = [(block.start, block.end) for block in blocks]
        order = sorted(range(len(blocks)), key=lambda n: -blocks[n].size_bytes)
        near = neighbours(lifetimes)
        if near is None:  # bins by the order of time, then
            chosen = place_in_order(lifetimes, [1] * len(blocks))
        else:
            chosen = [-1] * len(near)
            for number in order:  # the first bin with nothing that lives with it
                bins_near = {chosen[other] for other in near[number]}
                chosen[number] = next(bin_ for bin_ in count() if bin_ not in bins_near)
        bins: dict[int, list[MemBlock]] = {}
        for number in order:
            bins.setdefault(chosen[number], []).append(blocks[number])
        return [MemBin(tuple(members), members[0].size_bytes) for members in bins.values()]


class StrategyValidator(IMemoryOptimizerStrategy):
    """Another strategy, with every answer checked.

    References
    ----------
    Arm NN StrategyValidator.
    """

    def __init__(self, strategy: IMemoryOptimizerStrategy) -> None:
        self._strategy = strategy
        # Read once: a property is the strategy's code, and could answer otherwise later.
        self._name = read_backend("memory strategy", strategy, "name", str)
        self._where = f"memory strategy {self._name}"
        self._packing_type = read_backend(self._where, strategy, "packing_type", PackingType)

    @property
    def name(self) -> str:
        """The checked strategy's."""
        return self._name

    @property
    def packing_type(self) -> PackingType:
        """The checked strategy's."""
        return self._packing_type

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """The strategy's answer.

        Raises BackendError if the strategy raises, or its answer is of another type;
        MemoryValidationError if a block is missing, unknown or in two bins, does not fit into its
        bin, or overlaps another one in a way that the packing type forbids.
        """
        bins = self._ask(blocks)
        by_index = {block.index: block for block in blocks}
        counts = Counter(block.index for bin_ in bins for block in bin_.blocks)
        self._check(not [i for i in counts if i not in by_index], "a block is unknown")
        self._check(max(counts.values(), default=1) == 1, "a block is in several bins")
        self._check(len(counts) == len(by_index), "a block is in no bin")
        for bin_ in bins:
            self._check(bin_.size_bytes >= 0, "a bin has a negative size")
            for block in bin_.blocks:
                same = replace(block, offset=0) == replace(by_index[block.index], offset=0)
                self._check(same, "a block has been changed")
                fits = 0 <= block.offset <= bin_.size_bytes - block.size_bytes
                self._check(fits, "a block does not fit into its bin")
            self._check(not self._has_collision(bin_.blocks), "blocks of a bin overlap")
        return bins

    def _ask(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """The strategy's answer with nothing of the strategy's own in it."""

        def optimize() -> object:
            return tuple(
                MemBin(tuple(map(_plain_block, bin_.blocks)), operator.index(bin_.size_bytes))
                for bin_ in self._strategy.optimize(blocks)
            )

        return list(ask_backend(self._where, tuple, optimize))

    def _has_collision(self, blocks: Sequence[MemBlock]) -> bool:
        """Return whether blocks of a bin are in each other's way; a sweep over the steps."""
        is_single = self.packing_type is PackingType.SINGLE_AXIS
        living: list[tuple[int, int]] = []  # begin and end of the used parts, in order
        ends: list[tuple[int, tuple[int, int]]] = []
        for block in sorted(blocks, key=lambda b: b.start):
            # Below, not equal: a block is still read in its last step.
            while ends and ends[0][0] < block.start:
                del living[bisect_left(living, heappop(ends)[1])]
            used = block.offset, block.offset + block.size_bytes
            index = bisect_left(living, used)
            if is_single and living:
                return True
            # It takes no byte, and within a larger block it would break the order of `living`.
            if not is_single and not block.size_bytes:
                continue
            if not is_single and any(
                # Living blocks do not overlap so far, so that only the two neighbours can be hit.
                used[0] < other[1] and other[0] < used[1]
                for other in living[max(0, index - 1) : index + 1]
            ):
                return True
            living.insert(index, used)
            heappush(ends, (block.end, used))
        return False

    def _check(self, condition: bool, failed: str) -> None:
        """Raise unless a condition holds."""
        if not condition:
            raise MemoryValidationError(failed, where=self._where)


def _plain_block(block: MemBlock) -> MemBlock:
    numbers = block.start, block.end, block.size_bytes, block.offset, block.index
    # Fields may be NumPy's numbers, which wrap around, or a strategy's own.
    return MemBlock(*map(operator.index, numbers))


DEFAULT_STRATEGY = GreedyBySize()

_LIBRARY = {
    strategy.name: strategy
    for strategy in (DEFAULT_STRATEGY, ConstantMemoryStrategy(), SingleAxisPriorityList())
}


def get_memory_strategy(name: str) -> IMemoryOptimizerStrategy:
    """The strategy of a name; raises InvalidArgumentError if there is none."""
    check_choice(name, "memory strategy", sorted(_LIBRARY))
    return _LIBRARY[name]


def pack(
    blocks: Sequence[MemBlock],
    strategy: IMemoryOptimizerStrategy = DEFAULT_STRATEGY,
    # Sizes are rounded up to multiples of it; itself one of `ALIGNMENT_BYTES`.
    block_bytes: int = ALIGNMENT_BYTES,
) -> tuple[list[int], int]:
    """Choose offsets in one arena, which holds the strategy's bins one after the other.

    Raises ArmpyError if the strategy fails, or its answer cannot be used.

    Returns
    -------
    offsets : list of int
        Per block, a multiple of `block_bytes`.
    size_bytes : int
        Size of the arena.
    """
    numbered = [
        replace(block, index=index, size_bytes=rounded_up(block.size_bytes, block_bytes))
        for index, block in enumerate(blocks)
    ]
    # Checking every pair of blocks costs more than the default strategy itself.
    is_checked = strategy is DEFAULT_STRATEGY or isinstance(strategy, StrategyValidator)
    checked = strategy if is_checked else StrategyValidator(strategy)
    offsets = [0] * len(blocks)
    begin = 0
    for bin_ in checked.optimize(numbered):
        for block in bin_.blocks:
            offsets[block.index] = begin + block.offset
        # A strategy's bins may end anywhere; the offsets in the next one count from its beginning.
        begin += rounded_up(bin_.size_bytes, block_bytes)
    # Kernels may load whole vectors, so this holds for every strategy, armpy's own too.
    if any(offset % block_bytes for offset in offsets):
        raise MemoryValidationError(
            "an offset is not aligned",
            where=f"memory strategy {checked.name}",
            expected=f"multiples of {block_bytes}",
        )
    return offsets, begin
