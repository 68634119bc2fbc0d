"""How much of the long tests is run: all of it, or, where time is short, a part.

The environment variable ``ARMPY_SHORT_TESTS=1`` shortens them, as `.ci/run` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

IS_SHORTENED = os.environ.get("ARMPY_SHORT_TESTS", "") == "1"


def shortened(full: int, short: int) -> int:
    """How many of many like things to try."""
    return short if IS_SHORTENED else full


def first_and_another(things: Sequence[T], key: str) -> list[T]:
    """The first and one of the others, each of which gets its part of all keys."""
    others = things[1:]
    return [things[0], *others[crc32(key.encode()) % max(1, len(others)) :][:1]]
