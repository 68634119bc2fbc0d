"""A table that a plugin adds to a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading with a table below it.

    Raises InvalidArgumentError if a row has another number of cells than there are columns.
    """

    title: str
    columns: Sequence[str]
    """Headings; those that end in ``>`` have their cells at the right."""
    rows: Iterable[Sequence[object]]
    """Cells, kept as text."""

    def __post_init__(self) -> None:
        # Made text here, inside the plugin's guarded call: its cells may be code.
        columns = tuple(str(column) for column in self.columns)
        rows = tuple(tuple(str(cell) for cell in row) for row in self.rows)
        for row in rows:
            if len(row) != len(columns):
                raise InvalidArgumentError(
                    "a row does not have a cell for each column",
                    where=f"section '{self.title}'",
                    expected=f"{len(columns)} cells",
                    actual=str(len(row)),
                )
        for name, value in (("title", str(self.title)), ("columns", columns), ("rows", rows)):
            object.__setattr__(self, name, value)
