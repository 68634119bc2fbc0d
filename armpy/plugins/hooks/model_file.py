"""A model's bytes, opened once for whichever front-end takes them."""

from __future__ import annotations

import importlib
import mmap
import os
import stat
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import FileStamp
from armpy.errors import InvalidArgumentError, ParserError, full_path, suggest_path

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap
"""A path, or the bytes of a file."""


@dataclass(frozen=True, eq=False, slots=True)
class ModelFile:
    """A model as it is handed to a parser."""

    data: memoryview
    """Read-only bytes; the file stays mapped as long as they or an array over them exist."""
    label: str
    """Name in messages: the path, or "model" for bytes."""
    path: Path | None = None
    """Path of the file, for formats of several files; None for bytes."""
    others: dict[str, FileStamp] = field(default_factory=dict)
    """The other files that the model is made of, by their paths, as `also_read` has noted them."""

    def also_read(self, path: str | os.PathLike[str]) -> None:
        """Note another file of the model; to be called before it is opened.

        Raises OSError if there is no such file.

        Later uses of the model are refused if one of its files has changed by then.
        """
        # The first state counts, as the parser may have read the file by the second call.
        self.others.setdefault(os.path.abspath(path), FileStamp.of(os.stat(path)))

    @property
    def stem(self) -> str:
        """The file's name without folder and suffix, to name a network after."""
        return Path(self.label).stem


def open_model_file(source: ModelSource) -> ModelFile:
    """Open a model; a file is mapped, not read.

    Raises ParserError if there is no such file, or it cannot be read; InvalidArgumentError if
    `source` is neither a path nor bytes.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return ModelFile(memoryview(_map_file(path)), str(path), path)
    try:
        return ModelFile(memoryview(source).toreadonly().cast("B"), "model")
    except TypeError as error:
        raise InvalidArgumentError(
            "the model cannot be read",
            expected="a path, or contiguous bytes",
            actual=type(source).__name__,
        ) from error


def _map_file(path: Path) -> mmap.mmap | bytes:
    """Map a regular file; opening another kind of file might never return.

    In a sub-interpreter the file is read: one that ends with its process, with a model left open,
    would have to wait for the interpreter's lock to unmap it, and CPython 3.11 waits for ever.
    """
    try:
        # Before it is opened: opening a pipe would wait for a writer.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise ParserError(
                f"'{path}' is not a model file",
                expected="a file",
                actual=kind,
                fix="Give the path of a model file, such as model.tflite",
            )
        with path.open("rb") as file:
            # The system maps no empty file.
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            if not _is_main_interpreter():
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ParserError(
            "no such file",
            where=str(path),
            expected="a model file",
            actual=f"nothing at {full_path(path)}",
            fix=suggest_path(path),
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise ParserError(f"cannot be read: {error}", where=str(path)) from error


def _is_main_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # as it is called since Python 3.13
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        current, main = interpreters.get_current(), interpreters.get_main()
        return bool(current == main)
    return True  # an implementation without others
