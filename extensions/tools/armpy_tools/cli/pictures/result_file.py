"""Files with the results of all pictures: CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from armpy.cli.files import write_text
from armpy.core.documents import plain
from armpy_tools.cli.pictures.table_rows import TableRows, columns_of, layout_of

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureResult


def write_results(path: str, pictures: Sequence[PictureResult], top: int) -> None:
    """Write the results of pictures to a file, by its suffix.

    Parameters
    ----------
    path : str
        A name that ends in ``.csv`` (a row for each picture or finding) or ``.jsonl`` (a JSON
        document in each line).
    pictures : sequence of PictureResult
    top : int
        Classes that a table has columns for.
    """
    make_text = _table if Path(path).suffix.lower() == ".csv" else _lines
    # Undecodable bytes of files' names are escaped as on a terminal.
    text = make_text(pictures, top).encode("utf-8", "backslashreplace").decode("utf-8")
    write_text(os.path.realpath(path), text)


def _lines(pictures: Sequence[PictureResult], top: int) -> str:
    """A JSON document for each picture, in a line of its own."""
    del top  # each document has all classes that the run has listed
    documents = [plain(asdict(picture)) for picture in pictures]
    return "".join(json.dumps(document, allow_nan=False) + "\n" for document in documents)


def _table(pictures: Sequence[PictureResult], top: int) -> str:
    """Rows of pictures, or of the findings in them; the first usable picture decides which."""
    usable = next((picture for picture in pictures if not picture.error), None)
    layout = ("figures", 0) if usable is None else layout_of(usable, top)
    columns = columns_of(layout)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["file", *columns, "error"])
    make_rows = getattr(TableRows(top), layout[0])
    for picture in pictures:
        rows = [] if picture.error else list(make_rows(picture))
        for cells in rows or [[""] * len(columns)]:
            writer.writerow([picture.file, *cells, picture.error])
    return text.getvalue()
