"""Writes to stdout: lines and tables for people, JSON for programs."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_GAP = 2
"""Blanks between columns."""

_PIPE_WIDTH = 100_000
"""Columns where there is no terminal, so that nothing is folded."""


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Send to stderr what plugins print, so that stdout is the command's own."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(document: object) -> None:
    """Write one JSON document; NaN and infinities, which JSON lacks, become null."""
    import json  # noqa: PLC0415  # few commands need it

    if sys.stdout is not None:
        sys.stdout.write(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def plain(value: object) -> object:
    """A value made of what JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Printer:
    """Prints lines and tables, plain where stdout is no terminal.

    Notes
    -----
    To import what knows terminals, and how wide characters are, takes longer than to run a small
    network. What is plain and of ASCII is laid out here, as that would do it.
    """

    def __init__(self) -> None:
        self._rich = None if _is_plain() else _console()

    def line(self, text: str, style: str = "") -> None:
        """Print a line; a terminal may break it.

        Parameters
        ----------
        text : str
        style : str
            As rich calls it, such as ``yellow``; where there is a terminal that shows it.
        """
        if self._rich is None:
            sys.stdout.write(printable(text) + "\n")
            return
        from rich.text import Text  # noqa: PLC0415  # slow to import

        self._rich.print(Text(printable(text), style=style), soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at it, for whom lines of any length are hard to read."""
        return self._rich is not None and self._rich.is_terminal

    @property
    def width(self) -> int:
        """Columns that a line has."""
        return _PIPE_WIDTH if self._rich is None else self._rich.width

    def marked(self, text: str, *, is_good: bool) -> None:
        """Print a line about something that is well or not: with a sign, in colour, on terminals.

        Notes
        -----
        ``NO_COLOR`` leaves the sign. What is no terminal gets the text alone.
        """
        if self._rich is None or not self.is_terminal:
            self.line(text)
            return
        signs = {True: "\u2713", False: "\u26a0"}
        if not self._rich.encoding.lower().startswith("utf"):
            signs = {True: "+", False: "!"}
        self.line(f"{signs[is_good]} {text}", "green" if is_good else "yellow")

    def heading(self, text: str) -> None:
        """Print a line that stands out, after an empty one."""
        self.line("")
        if self._rich is None:
            self.line(text)
            return
        from rich.text import Text  # noqa: PLC0415

        self._rich.print(Text(printable(text), style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; cells are folded where a terminal is too narrow, never cut off.

        Parameters
        ----------
        columns : sequence of str
            Headings; those that end in ``>`` have their cells at the right.
        rows : iterable of sequence
        """
        cells = [[printable(str(cell)) for cell in row] for row in rows]
        if self._rich is not None:
            self._rich.print(_rich_table(columns, cells, self._rich.width))
            return
        lines = _laid_out(columns, cells)
        for line in _laid_out_by_rich(columns, cells) if lines is None else lines:
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


def _laid_out_by_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table's lines, whatever its characters are."""
    console = _console()
    with console.capture() as capture:
        console.print(_rich_table(columns, rows))
    return capture.get().splitlines()


def _rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None
) -> Table:
    """A table for a console.

    Notes
    -----
    Where it is too narrow, text is folded and numbers are not, as long as there is room for that.
    """
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for column, size in zip(columns, _widths(columns, rows, width), strict=True):
        side: Literal["left", "right"] = "right" if column.endswith(">") else "left"
        table.add_column(column.rstrip(">"), justify=side, overflow="fold", width=size)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> list[int] | list[None]:
    """Characters of each column on a terminal that is too narrow for all; else rich knows them.

    Numbers stay whole. Texts share what is left: each gets as much as it needs, or as any other.
    """
    from rich.cells import cell_len  # noqa: PLC0415

    unknown: list[None] = [None] * len(columns)
    if width is None:
        return unknown
    cells = [[column.rstrip(">"), *(row[i] for row in rows)] for i, column in enumerate(columns)]
    needed = [max(map(cell_len, column)) for column in cells]
    room = width - _GAP * len(columns)
    texts = [i for i, column in enumerate(columns) if not column.endswith(">")]
    least = [
        max(map(cell_len, columns[i].split()), default=0) if i in texts else size
        for i, size in enumerate(needed)
    ]
    if sum(needed) <= room or sum(least) > room:
        return unknown
    for most in range(max(needed), 0, -1):
        shared = [min(size, max(most, low)) for size, low in zip(needed, least, strict=True)]
        if sum(shared) <= room:
            return shared
    return unknown


def _is_plain() -> bool:
    """Whether stdout is certain to be no terminal, and nobody asks to take it for one."""
    asked = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return sys.stdout is not None and not asked and not sys.stdout.isatty()


def _console() -> Console:
    """A console for stdout."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    return (
        console
        if console.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=_PIPE_WIDTH)
    )


def printable(text: str) -> str:
    """Text whose control characters are escaped; names in files may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
