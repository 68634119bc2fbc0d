"""Tables of places, as numbers of several digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Integers: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
PlainSegment: TypeAlias = "list[int | list[list[int]]]"

# Recipes are text that is read and checked at every load, and have to stay short.
_MOST_SEGMENTS = 64
_PERIODS = (*range(1, 8), *range(8, 65, 8), *range(80, 257, 16), 384, 512, 1024)
"""Of panels and groups: few, as each is tried where something is missing."""

_NUM_FITTED = 64
_LEAST_REGULAR = 0.7
_LEAST_EVEN = 0.2


def segments_of(table: Integers) -> list[PlainSegment] | None:
    """A table as segments of a recipe, see `armpy.store.archive.packed_views`.

    Parameters
    ----------
    table : ndarray, int64, shape (indices,)
        Where each index lies.

    Returns
    -------
    list of [start, [[count, stride], ...]], or None
        None if there would be very many.
    """
    found: list[PlainSegment] = []
    for start, digits in _split(table, _MOST_SEGMENTS) or ():
        found.append([start, [list(digit) for digit in digits]])
    return found or None


def _split(table: Integers, most: int) -> list[tuple[int, list[tuple[int, int]]]] | None:
    """Starts and digits of at most so many segments."""
    result: list[tuple[int, list[tuple[int, int]]]] = []
    while len(table):
        if len(table) == 1:
            result.append((int(table[0]), []))
            break
        steps = np.diff(table)
        uneven = np.flatnonzero(steps != steps[0])
        run = int(uneven[0]) + 1 if uneven.size else len(table)
        blocks = table[: len(table) // run * run].reshape(-1, run)
        others = np.flatnonzero((np.diff(blocks) != steps[0]).any(axis=1))
        num_blocks = int(others[0]) if others.size else len(blocks)
        outer = _split(blocks[:num_blocks, 0], most) if num_blocks > 1 else [(int(table[0]), [])]
        if outer is None or len(result) + len(outer) > most:
            return None
        result += [(start, [*digits, (run, int(steps[0]))]) for start, digits in outer]
        table = table[num_blocks * run :]
    return result


def completed(table: Integers, known: Bools) -> Integers | None:
    """A table with what is missing, as far as it repeats itself at equal steps.

    Parameters
    ----------
    table : ndarray, int64, shape (indices,)
    known : ndarray, bool, shape (indices,)

    Returns
    -------
    ndarray, int64, or None
        None if there is no period at which most of what is known fits.
    """
    if known.all():
        return table
    if known.sum() < 2:
        return None
    best, fitting = None, _LEAST_REGULAR
    for period in _PERIODS:
        if period >= len(table):
            break
        for made in (_repeating(table, known, period), _of_two_digits(table, known, period)):
            right = 0.0 if made is None else float((made == table)[known].mean())
            if right > fitting or (best is None and right == fitting):
                best, fitting = made, right
        if fitting == 1:
            break
    return best


def _repeating(table: Integers, known: Bools, period: int) -> Integers | None:
    """What a table is if it repeats itself; None if some of a period is nowhere known."""
    both = np.flatnonzero(known[period:] & known[:-period])
    steps = table[both + period] - table[both]
    if not steps.size:
        return None
    found, counts = np.unique(steps, return_counts=True)
    if counts.max() < _LEAST_EVEN * len(steps):
        return None
    step = found[counts.argmax()]
    regular = both[steps == step]
    numbers = np.concatenate([regular, regular + period])[::-1]
    firsts = np.full(period, -1)
    firsts[numbers % period] = numbers
    one = _of_digits(table[firsts] - step * (firsts // period), firsts >= 0)
    if one is None:
        return None
    indices = np.arange(len(table))
    made: Integers = one[indices % period] + step * (indices // period)
    return made


def _of_digits(table: Integers, known: Bools) -> Integers | None:
    """What a period is whose indices are numbers of several digits themselves."""
    if known.all():
        return table
    for period in _PERIODS:
        if len(table) % period == 0 and period < len(table):
            made = _repeating(table, known, period)
            if made is not None and (made == table)[known].mean() >= _LEAST_REGULAR:
                return made
    return None


def _of_two_digits(table: Integers, known: Bools, period: int) -> Integers | None:
    """What a table is if equal steps make a period, and equal steps lead from one to the next."""
    numbers = np.flatnonzero(known)
    numbers = numbers[:: -(-len(numbers) // _NUM_FITTED)]
    outer, inner = np.divmod(np.arange(len(table)), period)
    factors = np.stack([np.ones_like(inner), outer, inner], axis=1)
    origin = table[numbers[0]]
    found = np.linalg.lstsq(
        factors[numbers].astype(np.float64),
        (table[numbers] - origin).astype(np.float64),
        rcond=None,
    )[0]
    made: Integers = origin + factors @ np.rint(found).astype(np.int64)
    return made
