"""Spaces of memory that commands read and write."""

from __future__ import annotations

import enum


class Space(enum.IntEnum):
    """Space that a buffer is a part of; TENSORS is followed by those of the program.

    TABLES are numbers for one size alone, which lie after the arguments of the commands. SHARED
    are constants that have their place already.
    """

    SHARED = -5
    TABLES = -4
    CONTROL = -3
    FAILURE = -2
    NUMBER = -1
    ARENA = 0
    CONSTANTS = 1
    TENSORS = 2
