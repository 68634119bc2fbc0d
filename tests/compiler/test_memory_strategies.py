from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.backend import (
    ALIGNMENT_BYTES,
    IMemoryOptimizerStrategy,
    MemBin,
    MemBlock,
    PackingType,
)
from armpy.compiler.memory.strategies import (
    ConstantMemoryStrategy,
    GreedyBySize,
    SingleAxisPriorityList,
    StrategyValidator,
    get_memory_strategy,
    pack,
)
from armpy.errors import MemoryValidationError

STRATEGIES = [GreedyBySize(), ConstantMemoryStrategy(), SingleAxisPriorityList()]

# Three tensors; the first two live at the same time, the third comes after the first.
A = MemBlock(0, 1, 128, 0, 0)
B = MemBlock(1, 2, 64, 0, 1)
C = MemBlock(2, 3, 192, 0, 2)

BLOCKS = st.lists(
    st.builds(
        lambda start, length, size: (start, start + length, size),
        st.integers(0, 12),
        st.integers(0, 5),
        st.integers(0, 1000),
    ),
    max_size=15,
).map(lambda triples: [MemBlock(*triple, 0, i) for i, triple in enumerate(triples)])


class Answering(IMemoryOptimizerStrategy):
    """Returns the answer that a test sets."""

    def __init__(
        self,
        answer: Callable[[Sequence[MemBlock]], Any],  # Any: wrong ones too
        packing_type: PackingType = PackingType.MULTI_AXIS,
    ) -> None:
        self._answer = answer
        self._packing_type = packing_type

    @property
    def name(self) -> str:
        return "Answering"

    @property
    def packing_type(self) -> PackingType:
        return self._packing_type

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        return self._answer(blocks)  # type: ignore[no-any-return]  # wrong ones too


def test_the_last_step_of_a_life_is_part_of_it() -> None:
    touching = [MemBlock(0, 1, 64, 0, 0), MemBlock(1, 2, 64, 0, 1)]
    assert len(SingleAxisPriorityList().optimize(touching)) == 2
    apart = [MemBlock(0, 1, 64, 0, 0), MemBlock(2, 3, 64, 0, 1)]
    assert len(SingleAxisPriorityList().optimize(apart)) == 1


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@given(BLOCKS)
def test_the_strategies_of_armpy_pass_the_validator(
    strategy: IMemoryOptimizerStrategy, blocks: list[MemBlock]
) -> None:
    aligned = [replace(b, size_bytes=-(-b.size_bytes // 64) * 64) for b in blocks]
    bins = StrategyValidator(strategy).optimize(aligned)
    assert sorted(block.index for bin_ in bins for block in bin_.blocks) == list(range(len(blocks)))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@given(BLOCKS)
def test_packed_blocks_that_live_together_are_apart_and_aligned(
    strategy: IMemoryOptimizerStrategy, blocks: list[MemBlock]
) -> None:
    offsets, size = pack(blocks, strategy)
    for a, at in zip(blocks, offsets, strict=True):
        assert at % ALIGNMENT_BYTES == 0
        assert at + a.size_bytes <= size
        for b, other in zip(blocks, offsets, strict=True):
            if a.index < b.index and a.start <= b.end and b.start <= a.end:
                assert at + a.size_bytes <= other or other + b.size_bytes <= at


def test_the_default_strategy_aligns_blocks_of_any_size() -> None:
    (both,) = GreedyBySize().optimize([MemBlock(0, 1, 65, 0, 0), MemBlock(0, 1, 1, 0, 1)])
    assert [block.offset for block in both.blocks] == [0, 128]
    assert both.size_bytes == 192


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_strategies_are_found_by_their_names(strategy: IMemoryOptimizerStrategy) -> None:
    assert get_memory_strategy(strategy.name).name == strategy.name


def one_bin(*blocks: MemBlock, size_bytes: int = 1024) -> Callable[[object], list[MemBin]]:
    """An answer of one bin, whatever is asked."""
    return lambda asked: [MemBin(blocks, size_bytes)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda blocks: [], "a block is in no bin"),
        (one_bin(A, B), "a block is in no bin"),
        (one_bin(A, B, C, replace(A, index=7)), "a block is unknown"),
        (lambda blocks: [MemBin((A, B, C), 999), MemBin((C,), 999)], "a block is in several bins"),
        (one_bin(A, A, B, C), "a block is in several bins"),
        (one_bin(A, B, replace(C, size_bytes=1)), "a block has been changed"),
        (one_bin(A, B, replace(C, end=9)), "a block has been changed"),
        (one_bin(A, B, replace(C, offset=900)), "a block does not fit into its bin"),
        (one_bin(A, B, replace(C, offset=-64)), "a block does not fit into its bin"),
        (one_bin(A, B, C, size_bytes=10), "a block does not fit into its bin"),
        (one_bin(A, B, C), "blocks of a bin overlap"),
        (one_bin(A, replace(B, offset=127), replace(C, offset=320)), "blocks of a bin overlap"),
        (
            lambda blocks: [*ConstantMemoryStrategy().optimize(blocks), MemBin((), -64)],
            "a bin has a negative size",
        ),
    ],
)
def test_the_validator_finds_every_kind_of_wrong_answer(
    answer: Callable[[Sequence[MemBlock]], list[MemBin]], text: str
) -> None:
    with pytest.raises(MemoryValidationError, match=f"^memory strategy Answering: {text}"):
        StrategyValidator(Answering(answer)).optimize([A, B, C])


def test_on_one_axis_blocks_of_a_bin_may_never_live_together_even_side_by_side() -> None:
    side_by_side = one_bin(A, replace(B, offset=128), replace(C, offset=192))
    several = StrategyValidator(Answering(side_by_side))
    assert len(several.optimize([A, B, C])) == 1
    single = StrategyValidator(Answering(side_by_side, PackingType.SINGLE_AXIS))
    with pytest.raises(MemoryValidationError, match="blocks of a bin overlap"):
        single.optimize([A, B, C])


def test_offsets_that_are_not_aligned_are_rejected() -> None:
    def answer(blocks: Sequence[MemBlock]) -> list[MemBin]:
        return [MemBin((replace(blocks[0], offset=8),), 256)]

    text = "^memory strategy Answering: an offset is not aligned. Expected multiples of 64"
    with pytest.raises(MemoryValidationError, match=text):
        pack([A], Answering(answer))
