"""Stdout as a terminal: colours, and tables that are folded where it is narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text


class Terminal:
    """Stdout for people; `gap` blanks lie between the columns of a table."""

    def __init__(self, pipe_width: int, gap: int) -> None:
        self._gap = gap
        self._console = Console(highlight=False, markup=False, emoji=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, markup=False, emoji=False, width=pipe_width)

    @property
    def is_terminal(self) -> bool:
        """Return whether it is one, or is to be taken for one."""
        return self._console.is_terminal

    @property
    def is_unicode(self) -> bool:
        """Return whether it shows all characters."""
        return self._console.encoding.lower().startswith("utf")

    @property
    def width(self) -> int:
        """Columns."""
        return self._console.width

    def line(self, text: str, style: str) -> None:
        """Print a line, which may be broken."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        leaves_out: Sequence[str] = (),
    ) -> None:
        """Print a table; cells are folded, never cut off; see `armpy.cli.printer.Printer.table`."""
        kept = _fitting(columns, rows, leaves_out, self.width, self._gap)
        shown = [[row[i] for i in kept] for row in rows]
        self._console.print(_rich_table([columns[i] for i in kept], shown, self.width, self._gap))
        left_out = [c.rstrip(">") for i, c in enumerate(columns) if i not in kept]
        if left_out:
            self.line(f"not shown in {self.width} columns: {', '.join(left_out)}", "dim")

    def table_lines(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        """A table's lines as they are, whatever its characters are."""
        with self._console.capture() as capture:
            self._console.print(_rich_table(columns, rows, None, self._gap))
        return capture.get().splitlines()


def _rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, gap: int
) -> Table:
    """A table for a console.

    Where it is too narrow, text is folded and numbers are not, as long as there is room for that.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    widths = _widths(columns, rows, width, gap)
    for column, size in zip(columns, widths, strict=True):
        side: Literal["left", "right"] = "right" if column.endswith(">") else "left"
        table.add_column(column.rstrip(">"), justify=side, overflow="fold", width=size)
    for row in rows:
        table.add_row(*(Text(_wrapped(cell, size)) for cell, size in zip(row, widths, strict=True)))
    return table


_COMFORTABLE = 28
"""Characters from which the column of a text may be folded rather than another one left out."""

_PIECE = re.compile(r".+?(?:\s+|(?<=[/_.:;+-])(?!\d)|(?<=[a-z])(?=[A-Z])|$)")
"""A part of a text within which no line ends: a word, or one of the words of a name."""


def _wrapped(text: str, width: int | None) -> str:
    """A text in lines of a width; only words that are longer are left for rich to fold."""
    if width is None or cell_len(text) <= width:
        return text
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    leaves_out: Sequence[str],
    width: int,
    gap: int,
) -> list[int]:
    """The numbers of the columns that are shown."""
    kept = list(range(len(columns)))

    def needed(i: int) -> int:
        size = max(cell_len(cell) for cell in (columns[i].rstrip(">"), *(row[i] for row in rows)))
        return size if columns[i].endswith(">") else min(size, _COMFORTABLE)

    for heading in leaves_out:
        if sum(map(needed, kept)) + gap * (len(kept) - 1) <= width:
            break
        kept = [i for i in kept if columns[i] != heading]
    return kept


def _longest(words: Iterable[str]) -> int:
    """Characters of the longest of some words."""
    return max((cell_len(word.rstrip()) for word in words), default=0)


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, gap: int
) -> list[int] | list[None]:
    """Characters of each column on a terminal that is too narrow for all; else rich knows them.

    Numbers stay whole, and so do words where there is room for all. Texts share the rest: each
    gets as much as it needs, or as any other.
    """
    unknown: list[None] = [None] * len(columns)
    if width is None:
        return unknown
    cells = [[column.rstrip(">"), *(row[i] for row in rows)] for i, column in enumerate(columns)]
    needed = [max(map(cell_len, column)) for column in cells]
    room = width - gap * len(columns)
    texts = [i for i, column in enumerate(columns) if not column.endswith(">")]

    def least_of(longest: Callable[[int], int]) -> list[int]:
        """Sizes of the columns where texts have their longest part, and numbers are whole."""
        return [longest(i) if i in texts else size for i, size in enumerate(needed)]

    least = least_of(lambda i: _longest(_PIECE.findall("\n".join(cells[i]))))
    if sum(least) > room:
        least = least_of(lambda i: _longest(columns[i].split()))
    if sum(needed) <= room or sum(least) > room:
        return unknown
    for most in range(max(needed), 0, -1):
        shared = [min(size, max(most, low)) for size, low in zip(needed, least, strict=True)]
        if sum(shared) <= room:
            return shared
    return unknown
