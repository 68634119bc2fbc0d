"""Paths that ``--output`` names: a file for all results, or a folder for arrays."""

from __future__ import annotations

from pathlib import Path

from armpy.cli.files import check_writable
from armpy.errors import InvalidArgumentError

SUFFIXES = (".csv", ".jsonl")
"""Of files with the results of all pictures; what ends otherwise is a folder of arrays."""


def is_result_file(path: str | None) -> bool:
    """Return whether what ``--output`` names is one file for all, and no folder."""
    return path is not None and Path(path).suffix.lower() in SUFFIXES


def check_output(path: str) -> None:
    """Check that a file or folder can be written before anything is computed.

    Raises
    ------
    InvalidArgumentError
        If it is a folder where a file is meant, or the other way round, or there is no such place.
    """
    target = Path(path)
    expected = "a folder, or a name that ends in " + ", ".join(SUFFIXES)
    if not is_result_file(path):
        if target.is_file():
            raise InvalidArgumentError(
                f"'{path}' is a file",
                where="--output",
                expected=expected,
            )
        check_writable(path)
        return
    if target.is_dir():
        raise InvalidArgumentError(f"'{path}' is a folder", where="--output", expected="a file")
    if not target.parent.is_dir():
        raise InvalidArgumentError(
            "there is no such folder", where="--output", actual=str(target.parent)
        )
    check_writable(path)
