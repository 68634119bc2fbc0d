"""Files that the processes of one node share: models that came as bytes, and compiled ones."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from armpy.core.file_digest import content_digest
from armpy.core.file_ownership import cache_directory, make_own_folder
from armpy.model.archive.model_cache import (
    NODE_FOLDER,
    NODE_LIMIT_BYTES,
    SENT_SUFFIX,
    SUFFIX,
)
from armpy.store.locks import locked
from armpy.store.owned_files import (
    UNFINISHED_SUFFIX,
    UnusableError,
    is_switched_off,
    opened,
    write_whole,
)

_LOCK = ".lock"

_log = logging.getLogger("armpy_serving")


def node_folder() -> Path | None:
    """A folder of the user's alone; None if nothing is to be kept, or none can be made."""
    if is_switched_off(os.environ):
        return None
    try:
        folder = cache_directory() / NODE_FOLDER
        make_own_folder(folder)
    except (OSError, RuntimeError) as error:
        _log.info("this node's processes share no files: %s", error)
        return None
    return folder


def received_file(digest: str, read: Callable[[], bytes | memoryview]) -> str | None:
    """Return where a model's bytes are on this node, written by the first process that asks.

    Parameters
    ----------
    digest : str
        SHA-256 of the bytes, in hexadecimal digits.
    read : callable
        Returns the bytes; called by that process alone.

    Returns
    -------
    str or None
        Path; None if they cannot be kept.
    """
    folder = node_folder()
    if folder is None:
        return None
    place = folder / f"{digest}{SENT_SUFFIX}"
    if _is_whole(place, digest):
        return str(place)
    try:
        with _making(place):
            if not _is_whole(place, digest):
                write_whole(place, [read()])
                _make_room(folder)
    except OSError as error:
        _log.info("%s is not kept: %s", place, error)
        return None
    return str(place)


def compiled_file(name: str, save: Callable[[Path], bool]) -> str | None:
    """Return where a compiled model is on this node, made by the first process that asks.

    Parameters
    ----------
    name : str
        Says all that its contents depend on.
    save : callable
        Writes a file to a path, or says no if that cannot be done.

    Returns
    -------
    str or None
        Path; None if it cannot be kept.
    """
    folder = node_folder()
    if folder is None:
        return None
    place = folder / f"{name}{SUFFIX}"
    if _is_own(place):
        return str(place)
    with _making(place):
        if _is_own(place):
            return str(place)
        unfinished = folder / f"{name}.{os.getpid()}.{os.urandom(4).hex()}{UNFINISHED_SUFFIX}"
        try:
            if not save(unfinished):
                return None
            unfinished.chmod(0o600)  # code that others can write is not used
            unfinished.replace(place)
        except OSError as error:
            _log.info("%s is not kept: %s", place, error)
            return None
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
        _make_room(folder)
    return str(place)


@contextlib.contextmanager
def _making(place: Path) -> Iterator[None]:
    """Let one process of the node at a time make a file."""
    with locked(place.with_suffix(_LOCK)):
        yield


def _is_own(place: Path) -> bool:
    """Return whether there is a file that no other user can have written."""
    try:
        with opened(place):
            return True
    except (OSError, UnusableError):
        return False


def _is_whole(place: Path, digest: str) -> bool:
    """Return whether a file matches its digest, and no other user can have written it."""
    try:
        with opened(place):
            return content_digest(str(place)) == digest
    except (OSError, UnusableError):
        return False


def _make_room(folder: Path) -> None:
    """Drop the least recently used entries, if the limit is exceeded."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process may have dropped it
            info = path.stat()
            files.append((max(info.st_atime_ns, info.st_mtime_ns), info.st_size, path))
    left = NODE_LIMIT_BYTES
    for _, size, path in sorted(files, reverse=True):
        left -= size
        if left < 0 and path.suffix != _LOCK:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
