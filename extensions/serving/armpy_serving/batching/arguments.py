"""Arguments of a batcher, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.core.arguments import MOST_THREADS, check_whole
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy_serving.health import check_model

_WHEN_FULL = ("wait", "error")
_MODES = ("batch", "direct")


@dataclass(frozen=True, slots=True)
class BatcherArguments:
    """Arguments of `armpy_serving.Batcher` after the model, checked."""

    max_batch: int
    max_wait_s: float
    max_waiting: int
    refuses: bool  # whether an item that finds no room is refused
    workers: int
    sizes: tuple[int, ...]  # smallest first
    mode: str


def checked_arguments(
    model: object,
    max_batch: int,
    max_wait_ms: float,
    max_waiting: int | None,
    when_full: str,
    workers: int,
    sizes: Sequence[int] | None,
    mode: str,
) -> BatcherArguments:
    """Check the arguments of `armpy_serving.Batcher`.

    Raises
    ------
    InvalidArgumentError
        If one cannot be used.
    """
    check_model(model, "Batcher")
    _check_whole("max_batch", max_batch)
    check_whole(workers, "Batcher: workers", least=1, most=MOST_THREADS)
    waiting = 8 * max_batch if max_waiting is None else max_waiting
    _check_whole("max_waiting", waiting)
    if not isinstance(max_wait_ms, (int, float)) or not 0 <= max_wait_ms < math.inf:
        raise _wrong("max_wait_ms", "a number of milliseconds, 0 or more", max_wait_ms)
    for name, word, known in (("when_full", when_full, _WHEN_FULL), ("mode", mode, _MODES)):
        if word not in known:
            raise _wrong(name, " or ".join(map(repr, known)), word)
    chosen = _checked_sizes(sizes, max_batch)
    wait_s, refuses = float(max_wait_ms) / 1e3, when_full == "error"
    return BatcherArguments(max_batch, wait_s, waiting, refuses, workers, chosen, mode)


def checked_seconds(given: float) -> float:
    """Return how long an item may take: no time at all if its caller had less than that left.

    Raises
    ------
    InvalidArgumentError
        If it is not a number.
    """
    if not isinstance(given, (int, float)) or math.isnan(given):
        raise _wrong("deadline_s", "a number of seconds", given)
    return max(0.0, float(given))


def _check_whole(name: str, number: object) -> None:
    """Check a number that is to be 1 or more."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise _wrong(name, "a whole number of 1 or more", number)


def _checked_sizes(num_rows: Sequence[int] | None, max_batch: int) -> tuple[int, ...]:
    """The numbers of rows that are executed, smallest first."""
    if num_rows is None:
        return batch_sizes(max_batch)
    if not isinstance(num_rows, Sequence):
        raise _wrong("sizes", "whole numbers", num_rows)
    for size in num_rows:
        _check_whole("sizes", size)
    sizes = tuple(sorted({*num_rows}))
    if not sizes or sizes[-1] != max_batch:
        raise _wrong(
            "sizes", f"whole numbers, the largest of them max_batch ({max_batch})", num_rows
        )
    return sizes


def batch_sizes(max_batch: int) -> tuple[int, ...]:
    """Sizes that a model is prepared for: powers of two, and the largest."""
    return (*(2**power for power in range(math.ceil(math.log2(max_batch)))), max_batch)


def _wrong(name: str, expected: str, argument: object) -> InvalidArgumentError:
    """The error for an argument of a wrong type or value."""
    return InvalidArgumentError(
        f"{name} has a wrong type or value",
        where="Batcher",
        expected=expected,
        actual=repr(argument),
        fix="Pass an expected value",
    )
