"""Writes to stdout: lines and tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 100_000
"""Columns where there is no terminal, so that nothing is folded."""


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Send to stderr what plugins print, so that stdout is the command's own."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(document: object) -> None:
    """Write one JSON document; NaN and infinities, which JSON lacks, become null."""
    if sys.stdout is not None:
        sys.stdout.write(json.dumps(_plain(document), indent=2, allow_nan=False) + "\n")


def _plain(value: object) -> object:
    """A value made of what JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class Printer:
    """Prints lines and tables, plain where stdout is no terminal."""

    def __init__(self) -> None:
        self._console = _console()

    def line(self, text: str) -> None:
        """Print a line; a terminal may break it."""
        from rich.text import Text  # noqa: PLC0415  # slow to import

        self._console.print(Text(printable(text)), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print a line that stands out, after an empty one."""
        from rich.text import Text  # noqa: PLC0415

        self._console.print()
        self._console.print(Text(printable(text), style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; cells are folded where a terminal is too narrow, never cut off.

        Parameters
        ----------
        columns : sequence of str
            Headings; those that end in ``>`` have their cells at the right.
        rows : iterable of sequence
        """
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            right = column.endswith(">")
            table.add_column(
                column.rstrip(">"), justify="right" if right else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(printable(str(cell))) for cell in row))
        if self._console.is_terminal:
            self._console.print(table)
            return
        with self._console.capture() as capture:
            self._console.print(table)
        for line in capture.get().splitlines():
            self.line(line.rstrip())


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
