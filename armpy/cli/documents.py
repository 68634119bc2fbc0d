"""Reserves stdout for the document of ``--json``, whatever engines and plugins print."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from armpy.cli.printer import document_streams, stdout_kept


def reserve_stdout(context: click.Context, _: click.Parameter, as_json: bool) -> bool:
    """Callback of ``--json``: reserve stdout until the command has ended."""
    if as_json and sys.stdout is not None and sys.stderr is not None:
        context.with_resource(_reserved_stdout(sys.stdout))
    return as_json


@contextmanager
def _reserved_stdout(stream: TextIO) -> Iterator[None]:
    """Send to stderr all but what `print_json` writes, also what libraries in C print."""
    copy = None
    if _is_file(stream, 1) and _is_file(sys.stderr, 2):
        stream.flush()
        copy = os.fdopen(os.dup(1), "w", encoding=stream.encoding, errors=stream.errors)
        os.dup2(2, 1)
    document_streams.append(copy or stream)
    try:
        with stdout_kept():
            yield
    finally:
        document_streams.pop()
        if copy is not None:
            if os.name == "posix":
                # C's own stdout is written while it still goes to stderr.
                ctypes.CDLL(None).fflush(None)
            os.dup2(copy.fileno(), 1)
            copy.close()


def _is_file(stream: TextIO, number: int) -> bool:
    """Return whether a stream writes to one of the process's standard files."""
    try:
        return stream.fileno() == number
    except (OSError, ValueError):  # captured, or closed
        return False
