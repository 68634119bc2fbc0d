"""Memory of a program: the arena that buffers share, and tensors that lie in each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armpy.core.dataclass import dataclass
from armpy.core.lifetimes import neighbours, place_in_order
from armpy.core.symbolic import computed, current
from armpy.graph import Value
from armpy_numba_acc.machine.alignment import ALIGNMENT_BYTES
from armpy_numba_acc.machine.memory import Buffer


@dataclass(frozen=True, slots=True)
class Join:
    """Place of a tensor in another one."""

    whole: Value
    offset_bytes: int


def plan_arena(buffers: Sequence[Buffer]) -> int:
    """Place buffers so that those that live at the same time do not overlap.

    They are placed by size, or in order of time if too many live at once to check all pairs.

    Parameters
    ----------
    buffers
        Of the arena; their offsets are set.

    Returns
    -------
    int
        Bytes that the arena needs.

    References
    ----------
    Pisarchyk, Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (greedy
    by size).
    """
    used = [buffer for buffer in buffers if buffer.first >= 0]
    lifetimes = [(buffer.first, buffer.last) for buffer in used]
    near = neighbours(lifetimes)
    # Checking all pairs takes quadratic time: `neighbours` returns None if that is too slow.
    if near is None:
        offsets = place_in_order(lifetimes, [padded_size(buffer.size_bytes) for buffer in used])
        for buffer, offset in zip(used, offsets, strict=True):
            buffer.offset = offset
    else:
        _place_by_size(used, near)
    return _aligned(max((buffer.offset + buffer.size_bytes for buffer in used), default=0))


def _place_by_size(buffers: Sequence[Buffer], near: Sequence[Sequence[int]]) -> None:
    """Place the largest buffers first, each before the first one that leaves room for it."""
    is_placed = [False] * len(buffers)
    for number in sorted(range(len(buffers)), key=lambda n: -buffers[n].size_bytes):
        buffer, offset = buffers[number], 0
        others = [buffers[n] for n in near[number] if is_placed[n]]
        for other in sorted(others, key=lambda b: b.offset):
            if offset + buffer.size_bytes <= other.offset:
                break
            offset = max(offset, other.offset + padded_size(other.size_bytes))
        buffer.offset = offset
        is_placed[number] = True


def plan_places(buffers: Sequence[Buffer]) -> int:
    """Plan an arena whose buffers have symbolic sizes.

    Buffers share a place only if their lifetimes do not overlap, so that the plan holds for every
    size. A place is as large as its largest buffer. Places are assigned for the current sizes,
    the largest first.

    Parameters
    ----------
    buffers
        Of the arena; their offsets are set.

    Returns
    -------
    int
        Bytes that the arena needs.

    References
    ----------
    As of `plan_arena` (shared objects).
    """
    places: list[list[Buffer]] = []
    used = [buffer for buffer in buffers if buffer.first >= 0]
    for buffer in sorted(used, key=lambda buffer: -current(buffer.size_bytes)):
        place = next((placed for placed in places if not _meets(buffer, placed)), None)
        if place is None:
            places.append([buffer])
        else:
            place.append(buffer)
    end = 0
    for place in places:
        for buffer in place:
            buffer.offset = end
        end = computed(_end_of_place, end, *[buffer.size_bytes for buffer in place])
    return end


def _meets(buffer: Buffer, others: Iterable[Buffer]) -> bool:
    """Return whether a buffer lives at the same time as another one."""
    return any(buffer.first <= other.last and other.first <= buffer.last for other in others)


def _end_of_place(begin: int, *sizes: int) -> int:
    """Return where the next place begins."""
    return begin + padded_size(max(sizes))


_PAGE_BYTES = 4096
_STEP_BYTES = 320
"""Offset between large buffers, so that they do not share cache sets."""


def padded_size(size_bytes: int) -> int:
    """Return the size of a buffer with the padding before the next one.

    Large buffers are often as long as whole pages. If they began at the same place of a page, or
    a little after it, a command's inputs and outputs would share few lines of the
    cache: depthwise convolutions take up to twice as long then.
    """
    # Small buffers stay in the L1 cache anyway, and steps between them would waste it.
    if size_bytes < 8 * _PAGE_BYTES:
        return _aligned(size_bytes)
    return _aligned(-(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES + _STEP_BYTES)


def _aligned(offset: int) -> int:
    """The next offset that a buffer may have."""
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
