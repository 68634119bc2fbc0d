"""The memory strategies that come with armpy, and the check of anybody's."""

from __future__ import annotations

import operator
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from armpy.backend import (
    ALIGNMENT_BYTES,
    IMemoryOptimizerStrategy,
    MemBin,
    MemBlock,
    PackingType,
)
from armpy.errors import InvalidArgumentError, MemoryValidationError
from armpy.plugins.boundary import ask_backend, read_backend


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
        """Offsets are multiples of `ALIGNMENT_BYTES`."""
        placed: list[MemBlock] = []
        total = 0
        for block in sorted(blocks, key=lambda b: (-b.size_bytes, b.start, b.index)):
            size = _aligned(block.size_bytes)
            offset = _smallest_gap(placed, block, size)
            insort(placed, replace(block, offset=offset), key=lambda b: b.offset)
            total = max(total, offset + size)
        return [MemBin(tuple(placed), total)] if placed else []


def _smallest_gap(placed: Sequence[MemBlock], block: MemBlock, size: int) -> int:
    """Offset of the smallest gap among blocks that live at the same time."""
    best, best_room = None, None
    end_so_far = 0
    for other in placed:
        if other.end < block.start or block.end < other.start:
            continue
        room = other.offset - end_so_far
        if room >= size and (best_room is None or room < best_room):
            best, best_room = end_so_far, room
        end_so_far = max(end_so_far, other.offset + _aligned(other.size_bytes))
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
        bins: list[list[MemBlock]] = []
        for block in sorted(blocks, key=lambda b: -b.size_bytes):
            for members in bins:
                if not any(_lives_with(block, other) for other in members):
                    members.append(block)
                    break
            else:
                bins.append([block])
        return [MemBin(tuple(members), members[0].size_bytes) for members in bins]


def _lives_with(a: MemBlock, b: MemBlock) -> bool:
    """Whether two blocks must be there at the same time."""
    return a.start <= b.end and b.start <= a.end


class StrategyValidator(IMemoryOptimizerStrategy):
    """Another strategy, with every answer checked.

    Parameters
    ----------
    strategy : IMemoryOptimizerStrategy

    References
    ----------
    Arm NN StrategyValidator.
    """

    def __init__(self, strategy: IMemoryOptimizerStrategy) -> None:
        self._strategy = strategy
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

        Raises
        ------
        BackendError
            If the strategy raises, or its answer is of another type.
        MemoryValidationError
            If a block is missing, unknown or in two bins, does not fit into its bin, or
            overlaps another one in a way that the packing type forbids.
        """
        bins = self._ask(blocks)
        given = {block.index: block for block in blocks}
        counts = Counter(block.index for bin_ in bins for block in bin_.blocks)
        self._check(not [i for i in counts if i not in given], "a block is unknown")
        self._check(max(counts.values(), default=1) == 1, "a block is in several bins")
        self._check(len(counts) == len(given), "a block is in no bin")
        for bin_ in bins:
            self._check(bin_.size_bytes >= 0, "a bin has a negative size")
            for block in bin_.blocks:
                same = replace(block, offset=0) == replace(given[block.index], offset=0)
                self._check(same, "a block has been changed")
                fits = 0 <= block.offset <= bin_.size_bytes - block.size_bytes
                self._check(fits, "a block does not fit into its bin")
            for a, b in combinations(bin_.blocks, 2):
                self._check(not self._collide(a, b), "blocks of a bin overlap")
        return bins

    def _ask(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """The strategy's answer with nothing of the strategy's own in it."""

        def optimize() -> object:
            return tuple(
                MemBin(tuple(map(_plain_block, bin_.blocks)), operator.index(bin_.size_bytes))
                for bin_ in self._strategy.optimize(blocks)
            )

        return list(ask_backend(self._where, tuple, optimize))

    def _collide(self, a: MemBlock, b: MemBlock) -> bool:
        """Whether two blocks of a bin are in each other's way."""
        if not _lives_with(a, b):
            return False
        if self.packing_type is PackingType.SINGLE_AXIS:
            return True
        return a.offset < b.offset + b.size_bytes and b.offset < a.offset + a.size_bytes

    def _check(self, condition: bool, failed: str) -> None:
        """Raise unless a condition holds."""
        if not condition:
            raise MemoryValidationError(failed, where=self._where)


def _plain_block(block: MemBlock) -> MemBlock:
    """A block of plain integers."""
    numbers = block.start, block.end, block.size_bytes, block.offset, block.index
    return MemBlock(*map(operator.index, numbers))


DEFAULT_STRATEGY = GreedyBySize()

_LIBRARY = {
    strategy.name: strategy
    for strategy in (DEFAULT_STRATEGY, ConstantMemoryStrategy(), SingleAxisPriorityList())
}


def get_memory_strategy(name: str) -> IMemoryOptimizerStrategy:
    """The strategy of a name.

    Raises
    ------
    InvalidArgumentError
        If there is none.
    """
    if name not in _LIBRARY:
        raise InvalidArgumentError(
            "there is no such memory strategy",
            expected=", ".join(sorted(_LIBRARY)),
            actual=repr(name),
        )
    return _LIBRARY[name]


def _aligned(size_bytes: int) -> int:
    """A size rounded up to the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def pack(
    blocks: Sequence[MemBlock], strategy: IMemoryOptimizerStrategy = DEFAULT_STRATEGY
) -> tuple[list[int], int]:
    """Choose offsets in one arena, which holds the strategy's bins one behind the other.

    Returns
    -------
    offsets : list of int
        Per block, a multiple of `ALIGNMENT_BYTES`.
    size_bytes : int
        Of the arena.

    Raises
    ------
    ArmpyError
        If the strategy fails, or its answer cannot be used.
    """
    numbered = [
        replace(block, index=index, size_bytes=_aligned(block.size_bytes))
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
        begin += _aligned(bin_.size_bytes)
    if any(offset % ALIGNMENT_BYTES for offset in offsets):
        raise MemoryValidationError(
            "an offset is not aligned",
            where=f"memory strategy {checked.name}",
            expected=f"multiples of {ALIGNMENT_BYTES}",
        )
    return offsets, begin
