"""Sharing of a command's work among threads.

Notes
-----
A command is cut into equal shares, and threads claim several neighbouring ones at a time
(`armpy_numba_acc.llvm.threads.fork_join`). A kernel gets them, and the thread that runs them, in
one word, `shares_of`; plain 0 of 1 is all of the work. Whether a kernel cuts one axis or another
may depend on how many shares there are in all, and on nothing else.
"""

from __future__ import annotations

from armpy_numba_acc.llvm.primitives import inlined

BLOCK = 64
"""Elements that one share has at least, so that no two threads write to one cache line."""

MOST_SHARES = 1 << 16
"""Limit for a command's shares and for threads; there are less."""


@inlined
def shares_of(first: int, count: int, thread: int) -> int:
    """Put the first share, the number of shares, and the number of the thread into a word."""
    return (thread * MOST_SHARES + count - 1) * MOST_SHARES + first


@inlined
def first_share(shares: int) -> int:
    """Return the number of the first one of some shares."""
    return shares % MOST_SHARES


@inlined
def thread_of(shares: int) -> int:
    """Return the number of the thread that runs some shares, which has scratch memory."""
    return shares // (MOST_SHARES * MOST_SHARES)


@inlined
def _end(shares: int) -> int:
    """Return the number of the share after the last one."""
    return shares % MOST_SHARES + shares // MOST_SHARES % MOST_SHARES + 1


@inlined
def share(count: int, shares: int, num_shares: int) -> tuple[int, int]:
    """First and last (not included) of the elements of some shares."""
    if num_shares == 1:
        return 0, count
    first, last = share_items((count + BLOCK - 1) // BLOCK, shares, num_shares)
    return min(first * BLOCK, count), min(last * BLOCK, count)


@inlined
def share_items(count: int, shares: int, num_shares: int) -> tuple[int, int]:
    """The same for items that are a cache line or more each."""
    # Multiplied before it is divided, so that shares differ by one item at most.
    return count * first_share(shares) // num_shares, count * _end(shares) // num_shares


@inlined
def share_tiles(
    num_tiles: int, num_panels: int, shares: int, num_shares: int
) -> tuple[int, int, int, int]:
    """First and last (not included) of the tiles of some shares, and of their panels of weights.

    Shares are cut from the tiles, as a thread then finds its pixels in the next layer's part of its
    own; if there are too few for equal parts, from the panels.
    """
    if num_tiles < min(num_panels, num_shares // 4):
        first, last = share_items(num_panels, shares, num_shares)
        return 0, num_tiles, first, last
    first, last = share_items(num_tiles, shares, num_shares)
    return first, last, 0, num_panels


@inlined
def share_vectors(count: int, panel: int, shares: int, num_shares: int) -> tuple[int, int]:
    """The same for vectors of which whole panels stay together."""
    first, last = share_items((count + panel - 1) // panel, shares, num_shares)
    return min(first * panel, count), min(last * panel, count)
