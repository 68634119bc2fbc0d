"""Writes to stdout: lines and tables for people, JSON for programs."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import click

    from armpy.cli.terminal import Terminal

_GAP = 2
"""Blanks between columns."""

_PIPE_WIDTH = 100_000
"""Columns where there is no terminal, so that nothing is folded."""


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Send to stderr what plugins print, so that stdout is the command's own."""
    with redirect_stdout(sys.stderr):
        yield


_document_streams: list[TextIO] = []
"""Where documents go while stdout is reserved for them."""


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
    _document_streams.append(copy or stream)
    try:
        with stdout_kept():
            yield
    finally:
        _document_streams.pop()
        if copy is not None:
            from armpy.core.c_library import c_library  # noqa: PLC0415 - few commands print JSON

            # C's own stdout is written while it still goes to stderr.
            c_library().fflush(None)
            os.dup2(copy.fileno(), 1)
            copy.close()


def _is_file(stream: TextIO, number: int) -> bool:
    """Return whether a stream writes to one of the process's standard files."""
    try:
        return stream.fileno() == number
    except (OSError, ValueError):  # captured, or closed
        return False


def document_stream() -> TextIO | None:
    """Return the stream for one JSON document; None if there is no standard output."""
    return _document_streams[-1] if _document_streams else sys.stdout


def print_json(document: object) -> None:
    """Write one JSON document; NaN and infinities, which JSON lacks, become null."""
    # Few commands are asked for JSON.
    from armpy.core.documents import plain  # noqa: PLC0415

    stream = document_stream()
    if stream is not None:
        stream.write(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")
        stream.flush()


class Printer:
    """Prints lines and tables, plain where stdout is not a terminal.

    To import what knows terminals, and how wide characters are, takes longer than to run a small
    network. Plain ASCII text is laid out here, in the same way.
    """

    def __init__(self) -> None:
        self._terminal = None if _is_plain() else _terminal()

    def line(self, text: str, style: str = "") -> None:
        """Print a line; a terminal may break it.

        Parameters
        ----------
        style : str
            As rich calls it, such as ``yellow``; where there is a terminal that shows it.
        """
        if self._terminal is None:
            sys.stdout.write(printable(text) + "\n")
        else:
            self._terminal.line(printable(text), style)

    @property
    def is_terminal(self) -> bool:
        """Return whether the output is a terminal, on which long lines are hard to read."""
        return self._terminal is not None and self._terminal.is_terminal

    def marked(self, text: str, *, is_good: bool) -> None:
        """Print a line about something that is well or not: with a sign, in colour, on terminals.

        ``NO_COLOR`` leaves the sign. Output other than a terminal gets the text alone.
        """
        if self._terminal is None or not self.is_terminal:
            self.line(text)
            return
        signs = {True: "\u2713", False: "\u26a0"}
        if not self._terminal.is_unicode:
            signs = {True: "+", False: "!"}
        self.line(f"{signs[is_good]} {text}", "green" if is_good else "yellow")

    def heading(self, text: str) -> None:
        """Print a line that stands out, after an empty one."""
        self.line("")
        self.line(text, "bold")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; cells are folded where a terminal is too narrow, never cut off.

        Parameters
        ----------
        columns : sequence of str
            Headings; those that end in ``>`` have their cells at the right.
        """
        cells = [[printable(str(cell)) for cell in row] for row in rows]
        if self._terminal is not None:
            self._terminal.table(columns, cells)
            return
        lines = _laid_out(columns, cells)
        if lines is None:
            lines = _terminal().table_lines(columns, cells)
        for line in lines:
            self.line(line.rstrip())


def _laid_out(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """A table's lines; None if not every character is known to be as wide as any other."""
    table = [[column.rstrip(">") for column in columns], *rows]
    if not all(cell.isascii() for row in table for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + _GAP * len(widths) > _PIPE_WIDTH:
        return None
    sides = [">" if column.endswith(">") else "<" for column in columns]
    return [
        (" " * _GAP).join(
            f"{cell.rstrip():{side}{width}}"
            for cell, side, width in zip(row, sides, widths, strict=True)
        )
        for row in table
    ]


def _is_plain() -> bool:
    """Return whether stdout is not a terminal and the environment does not claim otherwise.

    Without rich, as the doctor may find it, every output is plain.
    """
    if importlib.util.find_spec("rich") is None:
        return True
    asked = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return sys.stdout is not None and not asked and not sys.stdout.isatty()


def _terminal() -> Terminal:
    """Stdout for people, as wide as a pipe if it is not a terminal."""
    # Most output goes to programs, and rich takes long to import.
    from armpy.cli.terminal import Terminal  # noqa: PLC0415

    return Terminal(_PIPE_WIDTH, _GAP)


def printable(text: str) -> str:
    """Text whose control characters are escaped; names in files may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
