"""Stdout as a terminal: colours, and tables that are folded where it is narrow."""

from __future__ import annotations

from collections.abc import Sequence
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

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; cells are folded, never cut off."""
        self._console.print(_rich_table(columns, rows, self.width, self._gap))

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
    for column, size in zip(columns, _widths(columns, rows, width, gap), strict=True):
        side: Literal["left", "right"] = "right" if column.endswith(">") else "left"
        table.add_column(column.rstrip(">"), justify=side, overflow="fold", width=size)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, gap: int
) -> list[int] | list[None]:
    """Characters of each column on a terminal that is too narrow for all; else rich knows them.

    Numbers stay whole. Texts share the rest: each gets as much as it needs, or as any other.
    """
    unknown: list[None] = [None] * len(columns)
    if width is None:
        return unknown
    cells = [[column.rstrip(">"), *(row[i] for row in rows)] for i, column in enumerate(columns)]
    needed = [max(map(cell_len, column)) for column in cells]
    room = width - gap * len(columns)
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
