"""Writes to stdout: lines and tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import zip_longest
from typing import TextIO

import click

from armpy.core.units import printable

_GAP = "  "
"""Between columns."""


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
    """Prints lines and tables; on a terminal in colour, and folded where it is narrow.

    ``FORCE_COLOR`` has any output taken for a terminal, ``NO_COLOR`` leaves the colours out, and
    ``TERM=dumb`` names a terminal that has none.
    """

    def __init__(self) -> None:
        is_forced = bool(os.environ.get("FORCE_COLOR"))
        self.is_terminal = is_forced or (sys.stdout is not None and sys.stdout.isatty())
        is_plain = os.environ.get("TERM") == "dumb" and not is_forced
        self._has_colors = self.is_terminal and not is_plain and not os.environ.get("NO_COLOR")

    def line(self, text: str, *, color: str | None = None, is_bold: bool = False) -> None:
        """Print a line; a terminal may break it."""
        shown = printable(text)
        if color is not None or is_bold:
            shown = click.style(shown, fg=color, bold=is_bold or None)
        click.echo(shown, sys.stdout, color=self._has_colors)

    def marked(self, text: str, *, is_good: bool) -> None:
        """Print a line about something that is well or not: with a sign, in colour, on terminals.

        Output other than a terminal gets the text alone.
        """
        is_unicode = str(getattr(sys.stdout, "encoding", "")).lower().startswith("utf")
        good, bad = ("\u2713", "\u26a0") if is_unicode else ("+", "!")
        shown = f"{good if is_good else bad} {text}" if self.is_terminal else text
        self.line(shown, color="green" if is_good else "yellow")

    def heading(self, text: str) -> None:
        """Print a line that stands out, after an empty one."""
        self.line("")
        self.line(text, is_bold=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; cells are folded where a terminal is too narrow, never cut off.

        Parameters
        ----------
        columns : sequence of str
            Headings; those that end in ``>`` have their cells at the right.
        """
        names = [column.rstrip(">") for column in columns]
        is_right = [column.endswith(">") for column in columns]
        table = [names, *[[printable(str(cell)) for cell in row] for row in rows]]
        widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
        if self.is_terminal:
            least = [
                width if right else max(1, _width(name))  # numbers and headings stay whole
                for name, width, right in zip(names, widths, is_right, strict=True)
            ]
            widths = _narrowed(widths, least, shutil.get_terminal_size().columns)
        for number, row in enumerate(table):
            folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
            for parts in zip_longest(*folded, fillvalue=""):
                cells = map(_padded, parts, widths, is_right)
                self.line(_GAP.join(cells).rstrip(), is_bold=number == 0)


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _narrowed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths of columns for a line with `room`: the widest give way, down to what they need."""
    narrow = list(widths)
    while sum(narrow) + len(_GAP) * (len(narrow) - 1) > room:
        wide = [place for place, width in enumerate(narrow) if width > least[place]]
        if not wide:
            break
        narrow[max(wide, key=narrow.__getitem__)] -= 1
    return narrow


def _folded(cell: str, width: int) -> list[str]:
    """The lines of a cell in a column."""
    if _width(cell) <= width:
        return [cell]
    widest = max(map(_width, cell))  # one character: 2 if there are wide ones
    return textwrap.wrap(cell, max(1, width // widest), break_on_hyphens=False)


def _padded(text: str, width: int, is_right: bool) -> str:
    """A cell's line, as wide as its column."""
    blanks = " " * (width - _width(text))
    return blanks + text if is_right else text + blanks
