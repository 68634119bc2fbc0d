"""Files that are packed into a .tflite file, in a ZIP archive after the model."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from armpy.errors import ParserError

MOST_DIRECTORY_BYTES = 1 << 20
"""Most bytes of an archive's directory; Python needs about ten times as much for it."""

MOST_FILE_BYTES = 16 << 20
"""Most bytes of one file, unpacked; the longest lists of labels have one."""

_TAIL_BYTES = 1 << 16
"""Bytes before the end of a file in which an archive without a directory is looked for."""

_HEADER = re.compile(rb"PK(?:\x03\x04[\x0a-\x3f]\0|\x01\x02[\x0a-\x3f][\0-\x14])")
"""Beginning of a file in an archive, or of its row in the directory, with the versions."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)
"""Exceptions that `zipfile` raises for archives that it cannot read."""


class PackedFiles:
    """The files packed after a model.

    Raises
    ------
    ParserError
        If the archive is damaged or cut short, or its directory too large.
    """

    def __init__(
        self,
        data: memoryview,  # uint8; the whole .tflite file
    ) -> None:
        self._archive: zipfile.ZipFile | None = None
        reader = _MemoryFile(data)
        with _damage_reported():
            if zipfile.is_zipfile(reader):
                reader.left_bytes = MOST_DIRECTORY_BYTES
                self._archive = zipfile.ZipFile(reader)
                reader.left_bytes = None  # unpacked bytes are limited by `read`
            elif _HEADER.search(bytes(data[-_TAIL_BYTES:])):
                raise ParserError(
                    "the archive of packed files is cut short",
                    where="packed files",
                    expected="its directory at the end of the file",
                    fix="Copy the file again, from where it is whole",
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the files, in the archive's order."""
        return () if self._archive is None else tuple(self._archive.namelist())

    def read(self, name: str) -> bytes:
        """The contents of a file.

        Raises
        ------
        ParserError
            If there is no such file, or it is damaged, encrypted or too large.
        """
        where = f"packed file '{name}'"
        if self._archive is None or name not in self._archive.namelist():
            raise ParserError(
                "the model has no file of this name",
                where=where,
                expected=", ".join(self.names) or "none, as no archive follows the model",
                fix="Copy the file again, from where it is whole",
            )
        info = self._archive.getinfo(name)
        if info.compress_type not in _METHODS:
            raise ParserError("the compression is not supported", where=where)
        with _damage_reported(where), self._archive.open(info) as file:
            content = file.read(MOST_FILE_BYTES + 1)
        if len(content) > MOST_FILE_BYTES:
            raise ParserError(
                "the file is too large", where=where, expected=f"at most {MOST_FILE_BYTES} bytes"
            )
        return content


@contextmanager
def _damage_reported(where: str = "packed files") -> Iterator[None]:
    """Raise errors in an archive as the file's fault."""
    try:
        yield
    except _DAMAGE as error:
        raise ParserError(f"the archive is damaged: {error}", where=where) from error


class _MemoryFile:
    """File object over memory, through which `zipfile` reads without a copy."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0
        self.left_bytes: int | None = None  # how much may still be read; None for no limit

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, all that are left if `size` is negative or None."""
        end = len(self._data) if size is None or size < 0 else self._position + size
        part = self._data[self._position : end]
        if self.left_bytes is not None:
            self.left_bytes -= len(part)
            if self.left_bytes < 0:
                raise ParserError(
                    "the archive's directory is too large",
                    where="packed files",
                    expected=f"at most {MOST_DIRECTORY_BYTES} bytes",
                )
        self._position += len(part)
        return bytes(part)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go somewhere: from the beginning, from here, or from the end."""
        base = (0, self._position, len(self._data))[whence]
        if base + offset < 0:
            raise OSError("the position is before the beginning")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return where the next bytes are read."""
        return self._position

    def seekable(self) -> bool:
        """Return whether `seek` works."""
        return True

    def close(self) -> None:
        """Nothing is to be closed."""
