"""Stdout as a terminal: colours, and tables that are folded where it is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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

    def line(self, text: str, style: str) -> None:
        """Print a line, which may be broken."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; cells are folded, never cut off."""
        self._console.print(self._table(columns, rows))

    def table_lines(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        """A table's lines as they are, whatever its characters are."""
        with self._console.capture() as capture:
            self._console.print(self._table(columns, rows))
        return capture.get().splitlines()

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
        """A table for the console, which folds the widest columns first."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, self._gap, 0, 0))
        for column in columns:
            side: Literal["left", "right"] = "right" if column.endswith(">") else "left"
            table.add_column(column.rstrip(">"), justify=side, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        return table
