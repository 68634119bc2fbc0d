"""Sharing of a command's work among threads."""

from __future__ import annotations

from armpy_numba_acc.llvm.primitives import inlined

BLOCK = 64
"""Elements that one thread takes at least, so that no two write to one cache line."""


@inlined
def share(count: int, thread: int, num_threads: int) -> tuple[int, int]:
    """First and last (not included) of the elements that a thread takes."""
    if num_threads == 1:
        return 0, count
    blocks = (count + BLOCK - 1) // BLOCK
    first = blocks * thread // num_threads * BLOCK
    last = blocks * (thread + 1) // num_threads * BLOCK
    return min(first, count), min(last, count)


@inlined
def share_items(count: int, thread: int, num_threads: int) -> tuple[int, int]:
    """The same for items that are a cache line or more each."""
    # Multiplied before it is divided, so that shares differ by one item at most.
    return count * thread // num_threads, count * (thread + 1) // num_threads


@inlined
def share_tiles(
    num_tiles: int, num_panels: int, thread: int, num_threads: int
) -> tuple[int, int, int, int]:
    """First and last (not included) of a thread's tiles, and of its panels of weights.

    Threads share the tiles, or if there are fewer of them than threads, the panels.
    """
    if num_tiles < num_threads:
        first, last = share_items(num_panels, thread, num_threads)
        return 0, num_tiles, first, last
    first, last = share_items(num_tiles, thread, num_threads)
    return first, last, 0, num_panels


@inlined
def share_vectors(count: int, panel: int, thread: int, num_threads: int) -> tuple[int, int]:
    """The same for vectors of which whole panels stay together."""
    if num_threads == 1:
        return 0, count
    first = (count * thread // num_threads + panel // 2) // panel * panel
    last = (count * (thread + 1) // num_threads + panel // 2) // panel * panel
    # Rounding to whole panels may leave some over.
    if thread + 1 == num_threads:
        last = count
    return min(first, count), min(last, count)
