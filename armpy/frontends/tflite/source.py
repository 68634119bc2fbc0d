"""Where a model's bytes come from, and what they are if not a .tflite file."""

from __future__ import annotations

import importlib
import mmap
import os
import stat
from pathlib import Path
from typing import TypeAlias

from armpy.errors import InvalidArgumentError, ParserError

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap
"""A path, or the bytes of a file."""

IDENTIFIER = b"TFL3"
_IDENTIFIER_END = 8

_KNOWN_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive, such as a .keras or PyTorch file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as a Keras .h5 file"),
    (b"\x1f\x8b", "a gzip archive, which has to be unpacked first"),
    (b"GGUF", "a GGUF file"),
    (b"\x80\x02", "a Python pickle, such as an old PyTorch file"),
    (b"version https://git-lfs", "a Git LFS pointer in place of the file itself"),
    (b"<", "an HTML or XML page, perhaps of a failed download"),
)


def open_source(source: ModelSource) -> tuple[memoryview, str]:
    """Bytes of a model and a name for messages; a file is mapped, not read.

    Returns
    -------
    memoryview of uint8, read-only
        It keeps the mapping alive, as does every array that is a view of it.
    str

    Raises
    ------
    ParserError
        If there is no such file, or it cannot be read.
    InvalidArgumentError
        If `source` is neither a path nor bytes.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return memoryview(_map_file(path)), str(path)
    try:
        return memoryview(source).toreadonly().cast("B"), "model"
    except TypeError as error:
        raise InvalidArgumentError(
            "the model cannot be read",
            expected="a path, or contiguous bytes",
            actual=type(source).__name__,
        ) from error


def _map_file(path: Path) -> mmap.mmap | bytes:
    """Map a regular file; opening another kind of file might never return.

    Notes
    -----
    In a sub-interpreter the file is read: one that ends with its process, with a model left open,
    would have to wait for the interpreter's lock to unmap it, and CPython 3.11 waits for ever.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise ParserError("not a model file", where=str(path), actual=kind)
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            if not _is_main_interpreter():
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ParserError("no such file", where=str(path)) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise ParserError(f"cannot be read: {error}", where=str(path)) from error


def _is_main_interpreter() -> bool:
    """Whether this is the interpreter that the process has started with."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # as it is called since Python 3.13
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        current, main = interpreters.get_current(), interpreters.get_main()
        return bool(current == main)
    return True  # an implementation without others


def check_identifier(data: memoryview) -> None:
    """Check that the bytes say of themselves that they are a .tflite file.

    Raises
    ------
    ParserError
        If they do not; the text says what they look like instead.
    """
    if data[4:_IDENTIFIER_END] != IDENTIFIER:
        raise ParserError(
            "not a .tflite file",
            expected=f"the identifier {IDENTIFIER.decode()} at byte 4",
            actual=_describe(bytes(data[:64])),
        )


def _describe(head: bytes) -> str:
    """What the beginning of a file looks like."""
    if not head:
        return "an empty file"
    for beginning, kind in _KNOWN_BEGINNINGS:
        if head.startswith(beginning):
            return kind
    if head[0] == 0x08 and head[2:3] == b"\x12":
        return "an ONNX file (protocol buffers)"
    if all(byte in b"\t\n\r" or 0x20 <= byte < 0x7F for byte in head):
        return "text"
    if len(head) < _IDENTIFIER_END:
        return f"a file of {len(head)} bytes"
    return f"the bytes {head[4:_IDENTIFIER_END]!r}"
