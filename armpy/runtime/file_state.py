"""File state: whether a model's file is still what it was when the model was loaded."""

from __future__ import annotations

import os
from typing import TypeAlias

from armpy.errors import ParserError

FileState: TypeAlias = tuple[int, int] | None
"""Bytes and time of the last change; None for what is no file, or cannot be found."""


def file_state(source: object) -> FileState:
    """What tells a file from what it was, without reading it."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    try:
        found = os.stat(source)
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns


def check_unchanged(source: object, state: object) -> None:
    """Check that a file is what it was.

    Raises
    ------
    ParserError
        If it has been changed or is gone.
    """
    now = file_state(source)
    if now == state:
        return
    raise ParserError(
        "the model file is gone" if now is None else "the model file has changed since",
        where=str(source),
        fix="Load it again",
    )
