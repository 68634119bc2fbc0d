"""Files with the results of all pictures: CSV, JSON lines, or an archive of arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self, cast

from armpy.cli.files import writing
from armpy.store.owned_files import replacing
from armpy_tools.cli.pictures.jobs.array_spool import SpoolEncoder, write_archive
from armpy_tools.cli.pictures.jobs.encoders import Encoder, LinesEncoder, TableEncoder

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureOutcome


class ResultFile:
    """One file with the results of all pictures, written picture by picture.

    Parameters
    ----------
    path : str
    top : int
        Classes that a table has columns for.
    has_truth : bool
        Whether some pictures have labels.

    Notes
    -----
    Used as a context. The file is opened for the first results; an earlier file stays until then.
    Arrays wait in a temporary file, as an archive has all of an output in one array. Memory does
    not grow with the pictures.
    """

    def __init__(self, path: str, top: int, *, has_truth: bool) -> None:
        # The target of a link: a link stays one.
        self._target = Path(os.path.realpath(path))
        self._encoder: Encoder
        if self._target.suffix.lower() == ".npz":
            self._encoder = SpoolEncoder()
        elif self._target.suffix.lower() == ".csv":
            self._encoder = TableEncoder(top, has_truth=has_truth)
        else:
            self._encoder = LinesEncoder()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Nothing is written yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file; the results in it stay."""
        if self._file is not None:
            self._file.close()

    def store(self, outcomes: Sequence[PictureOutcome]) -> None:
        """Write the results of pictures that the model was given together."""
        if self._file is None:
            with writing(self._target):
                if isinstance(self._encoder, SpoolEncoder):
                    folder = self._target.parent
                    self._file = _spool(folder)
                else:
                    self._file = self._target.open("wb")
        content = b"".join(map(self._encoder.encode, outcomes))
        with writing(self._target):
            self._file.write(content)
            self._file.flush()

    def finish(self) -> None:
        """Write the encoder's remaining data; make the archive."""
        if self._file is None:
            return
        with writing(self._target):
            self._file.write(self._encoder.rest())
            self._file.flush()
            if isinstance(self._encoder, SpoolEncoder):
                self._write_archive(self._file, self._encoder)

    def _write_archive(self, spool: BinaryIO, encoder: SpoolEncoder) -> None:
        """Make the archive of all arrays; it replaces an earlier one in one step."""
        if self._target.exists() and not self._target.is_file():  # such as a pipe
            with self._target.open("wb") as file:
                write_archive(spool, encoder.types, file)
            return
        with replacing(self._target) as file:
            write_archive(spool, encoder.types, file)


def _spool(folder: Path) -> BinaryIO:
    """A file without a name, or with one on Windows; it goes when it is closed."""
    return cast("BinaryIO", tempfile.TemporaryFile(dir=folder))  # another type on each system
