"""Settings of where compiled code and programs are kept, from the environment."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from armpy.backend import cache_directory
from armpy.errors import InvalidArgumentError
from armpy.store.entries import Entries, warn_not_kept

SWITCH_VARIABLE = "ARMPY_NUMBA_CACHE"
"""Environment variable that switches the store ``off``."""

LIMIT_VARIABLE = "ARMPY_NUMBA_CACHE_MB"
"""Environment variable for how many MiB the store may take."""

FOLDER = "numba_acc"
"""Of armpy's cache directory."""

MACHINE_FOLDER = "numba_acc_machine"
"""Likewise, for the figures of the machine."""

_DEFAULT_LIMIT_MB = 2048
_MOST_DIGITS = 12
_LONGEST_SHOWN = 40


def machine_entries() -> Entries | None:
    """Entries about the machine, apart from the compiled ones; see `disk_entries`."""
    return _entries_of(MACHINE_FOLDER, "machine")


def disk_entries() -> Entries | None:
    """Return the entries on disk; None if none are to be kept.

    Raises
    ------
    InvalidArgumentError
        If a variable has a value that it cannot have.
    """
    return _entries_of(FOLDER, "compiled")


def _entries_of(folder: str, name: str) -> Entries | None:
    """Return the entries of a folder; parameters and errors as for `disk_entries`."""
    switch = os.environ.get(SWITCH_VARIABLE, "").strip().lower()
    if switch not in ("", "on", "off"):
        raise InvalidArgumentError(
            "the switch cannot have this value",
            where=SWITCH_VARIABLE,
            expected="on or off",
            actual=_shortened(switch),
            fix="ARMPY_CACHE_DIR says where things are kept",
        )
    # Also where nothing is kept: a wrong value is an error wherever it stands.
    limit_bytes = _limit_bytes()
    if switch == "off":
        return None
    try:
        return _entries_in(cache_directory() / folder, limit_bytes, name)
    except RuntimeError as error:
        # Home directories can be missing or read-only; models have to load all the same.
        warn_not_kept(str(error))
        return None


@lru_cache(maxsize=8)
def _entries_in(folder: Path, limit_bytes: int, name: str) -> Entries:
    """The entries of a folder, which remember how much was written since they listed it."""
    return Entries(folder, limit_bytes, name)


def _limit_bytes() -> int:
    """Return how large the store may be."""
    text = os.environ.get(LIMIT_VARIABLE, "") or str(_DEFAULT_LIMIT_MB)
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidArgumentError(
            "the limit cannot be used",
            where=LIMIT_VARIABLE,
            expected=f"a number of MiB with at most {_MOST_DIGITS} digits",
            actual=_shortened(text),
        )
    return int(text) << 20


def _shortened(text: str) -> str:
    """A variable's value in a message's bearable length."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")
