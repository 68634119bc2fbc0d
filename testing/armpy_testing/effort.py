"""Which tests run, and how much of the long ones: the environment variable ``ARMPY_TEST_EFFORT``.

====  ========  ==================================================================================
0     default   tests without a mark
1     landing   also those marked ``slow``
2     full      also those marked ``nightly``
3, …  campaign  tests that choose some of many cases take all, and tests of random cases try the
                number less one times as many, so that 101 tries a hundred times as many
====  ========  ==================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

Number = TypeVar("Number", int, float)
T = TypeVar("T")

EFFORT = int(os.environ.get("ARMPY_TEST_EFFORT", "0"))
LANDING, FULL = 1, 2
IS_CAMPAIGN = EFFORT > FULL


def effort(usual: Number, *, quick: Number | None = None) -> Number:
    """How many of many like things to try, or for how long.

    `usual`: without a campaign.
    `quick`: among the default tests, where that is less.
    """
    if quick is not None and EFFORT < LANDING:
        return quick
    return usual * max(1, EFFORT - 1)


def part_of_kit(*parts: str) -> Sequence[str]:
    """A filter of the conformance kit: some parts, or all of it in a campaign."""
    return ("",) if IS_CAMPAIGN else parts


def first_and_another(things: Sequence[T], key: str) -> list[T]:
    """The first; with slow tests also one of the others for every third key, in equal parts."""
    others = things[1:] if EFFORT >= LANDING else []
    return [things[0], *others[crc32(key.encode()) % max(1, 3 * len(others)) :][:1]]
