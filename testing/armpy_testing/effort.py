"""Which tests run, and how much of the long ones: the environment variable ``ARMPY_TEST_EFFORT``.

0 runs the default tests, 1 (before landing) also those marked ``slow``, 2 (full) also those marked
``nightly``. A larger number is a campaign: tests that choose some of many cases take all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

Number = TypeVar("Number", int, float)
T = TypeVar("T")

EFFORT = int(os.environ.get("ARMPY_TEST_EFFORT", "0"))
RUNS_SLOW = EFFORT >= 1
RUNS_NIGHTLY = EFFORT >= 2
IS_FULL = EFFORT >= 3


def effort(
    part: Number, full: Number, variable: str = "", *, quick: Number | None = None
) -> Number:
    """How many of many like things to try, or for how long.

    `part`, `full`: of the shortened form, and of the full one.
    `quick`: without slow tests, where that is less than `part`.
    `variable`: of the environment: a number there counts more than both.
    """
    if quick is None or RUNS_SLOW:
        quick = part
    chosen = full if IS_FULL else quick
    return type(chosen)(os.environ.get(variable, chosen))


def part_of_kit(*parts: str) -> Sequence[str]:
    """A filter of the conformance kit: some parts, or all of it in the full form."""
    return ("",) if IS_FULL else parts


def first_and_another(things: Sequence[T], key: str) -> list[T]:
    """The first; with slow tests also one of the others for every third key, in equal parts."""
    others = things[1:] if RUNS_SLOW else []
    return [things[0], *others[crc32(key.encode()) % max(1, 3 * len(others)) :][:1]]
