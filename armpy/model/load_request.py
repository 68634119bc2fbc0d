"""Request of `armpy.load`: all that it is asked for."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.file_digest import READ_BYTES
from armpy.core.file_ownership import FileStamp
from armpy.errors import Argument, InvalidArgumentError, ParserError, full_path
from armpy.model.load_options import LoadOptions
from armpy.plugins.discovery.entry_point_cache import InstalledEntryPoints, installed
from armpy.store.archive.magic import is_prepared

if TYPE_CHECKING:
    from armpy.plugins.hooks.model_file import ModelSource

_FIRST_BYTES = 8
_ADDRESSES = ("http://", "https://", "file://", "ftp://", "s3://", "gs://")

FileState: TypeAlias = Mapping[str, FileStamp | None]
"""The state of a model's files, by their paths; None for a missing one."""


@dataclass(frozen=True)
class LoadRequest:
    """A model to load, and how."""

    source: ModelSource
    options: LoadOptions

    @cached_property
    def installed(self) -> InstalledEntryPoints:
        """Installed entry points, read once for each load, as that takes most of a millisecond."""
        return installed()

    @property
    def path(self) -> str | os.PathLike[str] | None:
        """Return the path of the file; None for contents in memory."""
        return self.source if isinstance(self.source, str | os.PathLike) else None

    def with_absolute_path(self) -> LoadRequest:
        """The same with an absolute path, for when the working directory has changed."""
        path = self.path
        if path is None:
            return self
        return LoadRequest(os.path.abspath(os.fsdecode(path)), self.options)


def as_source(given: object) -> ModelSource:
    """Convert the argument of `armpy.load` to a path or bytes."""
    if isinstance(given, str | os.PathLike):
        if not os.fspath(given):
            raise _no_source("the path is empty", given)
        if isinstance(given, str) and given.lower().startswith(_ADDRESSES):
            raise _no_source("this is not a path", given, "Download it, and load it by its path")
        return given
    if isinstance(given, bytes):
        return given
    if callable(getattr(given, "read", None)):
        return _contents(given)
    if getattr(given, "dtype", "uint8") != "uint8":
        raise _no_source("the model has the wrong type", given)
    try:
        view = memoryview(given)  # type: ignore[arg-type]  # a TypeError is waited for
    except TypeError:
        raise _no_source("the model has the wrong type", given) from None
    return view if view.c_contiguous else view.tobytes()


def _contents(file: Any) -> bytes:  # Any: whatever can be read
    """Return the unread rest of an open file."""
    try:
        read = file.read()
    except (OSError, ValueError, TypeError) as error:  # ValueError: it is closed
        raise _no_source(f"the file cannot be read: {error}", file) from error
    if isinstance(read, str):
        raise _no_source("the file was opened as a text", file, "Open it with open(path, 'rb')")
    if not isinstance(read, bytes | bytearray | memoryview):
        raise _no_source("the file does not read as bytes", file)
    if not len(read):
        raise _no_source("nothing is left to read of the file", file, "Go back with file.seek(0)")
    return bytes(read)


def _no_source(failed: str, source: object, fix: str = "") -> InvalidArgumentError:
    """The error for what cannot be loaded."""
    is_plain = isinstance(source, str) or source is None
    return InvalidArgumentError(
        failed,
        argument=Argument("source"),
        expected="a path, the bytes of a model file, or a file opened with open(path, 'rb')",
        actual=repr(source) if is_plain else type(source).__qualname__,
        fix=fix or "Pass one of these; armpy.Model takes networks and graphs",
    )


def begins_prepared(source: ModelSource) -> bool:
    """Return whether a file or its contents begin as a compiled model; False if unreadable."""
    if not isinstance(source, str | os.PathLike):
        return is_prepared(bytes(memoryview(source)[:_FIRST_BYTES]))
    try:
        # Not blocking: a pipe without a writer would never open.
        handle = os.open(source, READ_BYTES)
    except (OSError, ValueError):
        return False
    try:
        # A device, as all files named aux are on Windows, could be read for ever.
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        return is_file and is_prepared(os.read(handle, _FIRST_BYTES))
    except OSError:
        return False
    finally:
        os.close(handle)


def file_state(source: object) -> FileState:
    """Metadata that detects changes of a file without reading it; empty for contents."""
    if not isinstance(source, (str, os.PathLike)):
        return {}
    path = full_path(source)  # if the current folder is gone, so is what lay there
    return {path: _stamp(path)}


def check_unchanged(state: FileState) -> None:
    """Check that a model's files are unchanged."""
    for path, before in state.items():
        now = _stamp(path)
        if now != before:
            failed = "is gone" if now is None else "has changed since it was loaded"
            raise ParserError(f"the model file {failed}", where=path, fix="Load it again")


def _stamp(path: str) -> FileStamp | None:
    """A file's stamp; None if there is none."""
    try:
        return FileStamp.of(os.stat(path))
    except (OSError, ValueError):
        return None
