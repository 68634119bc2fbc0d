"""A JSON document with a result for each of many pictures, which are kept on disk until then."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from textwrap import indent
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from armpy.cli.printer import document_stream
from armpy.core.documents import plain

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureOutcome

_IN_MEMORY_BYTES = 1 << 20

_PLACE = '"pictures": []'
"""Of the results in a document without them; in a text it would have its quotes escaped."""


class DocumentSpool:
    """Results of pictures on their way into one document.

    Notes
    -----
    Used as a context. They are printed when all are there: a run that fails prints no part of a
    document.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115  # it lasts as long as this
            _IN_MEMORY_BYTES, "w+", encoding="utf-8"
        )
        self._separator = "\n"

    def __enter__(self) -> Self:
        """It is open from the start."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the results go."""
        self._file.close()

    def store(self, outcomes: Sequence[PictureOutcome]) -> None:
        """Take in the next results."""
        for outcome in outcomes:
            text = json.dumps(plain(asdict(outcome.result)), indent=2, allow_nan=False)
            self._file.write(self._separator + indent(text, "    "))
            self._separator = ",\n"

    def print_in(self, document: Mapping[str, object], stream: TextIO | None = None) -> None:
        """Write a document with the results as its ``pictures``, as `print_json` writes one.

        Parameters
        ----------
        document : mapping
            Its ``pictures`` are replaced.
        stream : file, optional
            Where `print_json` writes if left out.
        """
        stream = document_stream() if stream is None else stream
        if stream is None:
            return
        text = json.dumps(plain({**document, "pictures": []}), indent=2, allow_nan=False)
        head, _, tail = text.partition(_PLACE)
        stream.write(head + _PLACE[:-1])
        self._file.seek(0)
        while piece := self._file.read(_IN_MEMORY_BYTES):
            stream.write(piece)
        stream.write(("\n  " if self._separator != "\n" else "") + "]" + tail + "\n")
        stream.flush()
