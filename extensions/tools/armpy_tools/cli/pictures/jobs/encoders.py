"""Encoders: results as lines of JSON or rows of a table, one picture after the other."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from armpy.core.documents import plain
from armpy_tools.cli.pictures.jobs.table_rows import Layout, TableRows, columns_of, layout_of

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureOutcome, PictureResult


class Encoder(Protocol):
    """Makes bytes of outcomes, in their order."""

    def encode(self, outcome: PictureOutcome) -> bytes:
        """The next bytes of the file."""
        ...

    def rest(self) -> bytes:
        """Return the rest to be written after the last outcome."""
        ...


class LinesEncoder:
    """A JSON document for each picture, in a line of its own."""

    def encode(self, outcome: PictureOutcome) -> bytes:
        """The picture's line."""
        document = plain(asdict(outcome.result))
        return named(json.dumps(document, allow_nan=False) + "\n").encode()

    def rest(self) -> bytes:
        """Nothing."""
        return b""


class TableEncoder:
    """Rows of a CSV file: pictures, or the findings in them.

    Parameters
    ----------
    top : int
        Classes that each picture has columns for.
    has_truth : bool
        Whether some pictures have labels.

    Notes
    -----
    The first picture that can be used decides on the columns. Until then, what cannot be used is
    held: a name and a reason each.
    """

    def __init__(self, top: int, *, has_truth: bool) -> None:
        self._layout: Layout | None = None
        self._rows = TableRows(top)
        self._top = top
        self._has_truth = has_truth
        self._held: list[PictureResult] = []

    def encode(self, outcome: PictureOutcome) -> bytes:
        """The picture's rows; the heading, and the rows held back, before the first ones."""
        result = outcome.result
        self._held.append(result)
        if self._layout is None and result.error:
            return b""
        return self._release(layout_of(result, self._top) if self._layout is None else None)

    def rest(self) -> bytes:
        """A table without any answer."""
        return self._release(("figures", 0)) if self._layout is None else b""

    def _release(self, decided: Layout | None) -> bytes:
        """Rows of all that is held, after the heading if that is decided now."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        truth = ("truth", "right") if self._has_truth else ()
        if decided is not None:
            self._layout = decided
            writer.writerow(["file", *columns_of(decided), *truth, "error"])
        assert self._layout is not None
        for result in self._held:
            make_rows = getattr(self._rows, self._layout[0])
            rows = [] if result.error else list(make_rows(result))
            for cells in rows or [[""] * len(columns_of(self._layout))]:
                row: list[object] = [result.file, *cells]
                if self._has_truth:
                    row += [result.truth, "" if result.is_right is None else int(result.is_right)]
                writer.writerow([*row, result.error])
        self._held.clear()
        return named(text.getvalue()).encode()


def named(text: str) -> str:
    """A text whose undecodable bytes, of files' names, are escaped as on a terminal."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
