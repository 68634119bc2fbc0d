"""Bars on a terminal, as rich draws them."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def started_bars(stream: TextIO) -> Progress:
    """Bars that are drawn from now on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(file=stream), transient=True)
    bars.start()
    return bars
