"""Which tests run, and how much of the long ones.

Tests marked ``slow`` run where they are named or where ``ARMPY_SLOW_TESTS=1``, and in full where
``ARMPY_FULL_TESTS=1``, which also runs those marked ``nightly``. Campaigns run even more: the
variable that a test names says how much.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

Number = TypeVar("Number", int, float)
T = TypeVar("T")

IS_FULL = os.environ.get("ARMPY_FULL_TESTS", "") == "1"
RUNS_SLOW = IS_FULL or os.environ.get("ARMPY_SLOW_TESTS", "") == "1"


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
