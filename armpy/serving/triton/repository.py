"""Repositories of models: folders that a server may look at at any time.

Notes
-----
What is new is written beside the repository and put in its place in one step, so that a server
never sees a part of it. Versions that stay are linked, not copied, under a lock: exports side by
side keep each other's. Instances that run keep the files that they have mapped.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from armpy.errors import InvalidArgumentError
from armpy.store.locks import locked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
_LISTED_S = 0.05
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def check_name(name: str) -> None:
    """Check a model's name, which is its folder's and a part of addresses.

    Raises
    ------
    InvalidArgumentError
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            "a model cannot be called so",
            where="--name",
            expected="letters, digits, '_', '-' and '.', a letter or digit first",
            actual=repr(name),
        )


def put_model(
    repository: Path, name: str, version: int, write: Callable[[Path], None], *, force: bool
) -> Path:
    """Put a model, or one more version of it, into a repository.

    Parameters
    ----------
    repository : Path
        Made if it is not there.
    name : str
    version : int
    write : callable
        Writes all of the model to a folder: its configuration, and the version's folder.
    force : bool
        Whether a version that is there is replaced.

    Returns
    -------
    Path
        The model's folder.

    Raises
    ------
    InvalidArgumentError
        If the version is there already, or the folder cannot be written.
    """
    place = repository / name
    check_free(repository, name, version, force=force)
    try:
        repository.mkdir(parents=True, exist_ok=True)
        # Beside the repository: each folder in it is a model, whatever its name.
        root = repository.resolve()
        staged = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    except OSError as error:
        raise InvalidArgumentError(
            f"the repository cannot be written: {error}", where=str(repository)
        ) from error
    try:
        new = staged / name
        new.mkdir()
        write(new)
        # Not while it is written, which may take minutes; so another export may have been quicker.
        with locked(root.parent / f".{root.name}-{name}.lock"):
            check_free(repository, name, version, force=force)
            if place.exists():
                _keep_others(place, new, version)
            _put(new, place)
        # Who has just begun to list what was there before shall list all of it.
        time.sleep(_LISTED_S)
    finally:
        # Also what was there before; who has mapped its files keeps them.
        shutil.rmtree(staged, ignore_errors=True)
    return place


def check_free(repository: Path, name: str, version: int, *, force: bool) -> None:
    """Check that a model can be put into a repository; errors as for `put_model`."""
    check_name(name)
    if repository.exists() and not repository.is_dir():
        raise InvalidArgumentError("the repository is no folder", where=str(repository))
    if repository.exists():
        _check_movable(repository.resolve())
    if not force and (repository / name / str(version)).exists():
        raise InvalidArgumentError(
            "the model is in the repository already",
            where=str(repository / name / str(version)),
            fix="Give another --model-version or --name, or --force to replace it",
        )


def _check_movable(root: Path) -> None:
    """Check that folders beside the repository can be moved into it."""
    try:
        # Of names that are not there: the system looks at the mounts first, and moves nothing.
        (root.parent / f".{root.name}-none").rename(root / ".none")
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise InvalidArgumentError(
                "the repository is mounted from another file system than the folder that it is in, "
                "where models are written before they appear at once",
                where=str(root),
                fix="Give a folder in it, and the server the same; or export where it is no mount",
            ) from error


def _keep_others(place: Path, new: Path, version: int) -> None:
    """Add what stays of a model to the folder that takes its place."""
    ignore = _all_but(place, version)
    shutil.copytree(place, new, copy_function=_link, ignore=ignore, dirs_exist_ok=True)
    os.utime(new)  # copied as well: servers that poll look for a later time


def _all_but(place: Path, version: int) -> Callable[[str, list[str]], list[str]]:
    """For copying a model's folder: what is written anew is left out."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        anew = {str(version), "config.pbtxt", "labels.txt", "__pycache__"}
        return [n for n in names if n in anew] if Path(folder) == place else []

    return left_out


def _link(source: str, target: str) -> None:
    """Have the same file at another place."""
    os.link(source, target)


def _put(new: Path, place: Path) -> None:
    """Put a folder to its place, in exchange for what is there."""
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        # Without the system's help, there is nothing for a moment.
        place.rename(new.with_name(f"{new.name}.before"))
        new.rename(place)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change their names in one step, where the system can (Linux)."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)
