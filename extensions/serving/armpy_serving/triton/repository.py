"""Repositories of models: folders that a server may look at at any time.

Notes
-----
New files are written beside the repository and put in their place in one step, so that a server
never sees a part of it. Versions that stay are linked, not copied, under a lock: exports side by
side keep each other's. Instances that run keep the files that they have mapped.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from armpy.errors import Argument, InvalidArgumentError
from armpy.store.locks import locked
from armpy_serving.triton.config import LABELS_FILE
from armpy_serving.triton.version_file import check_alike, versions_in

Config = Mapping[str, Any]  # Any: JSON

CONFIG_FILE = "config.pbtxt"
_OF_ALL_VERSIONS = (CONFIG_FILE, LABELS_FILE)

_log = logging.getLogger("armpy_serving")

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
            argument=Argument("name"),
            expected="letters, digits, '_', '-' and '.', a letter or digit first",
            actual=repr(name),
        )


def put_model(
    repository: Path,
    name: str,
    version: int,
    write: Callable[[Path], None],
    *,
    force: bool,
    config: Config | None = None,
) -> Path:
    """Put a model, or one more version of it, into a repository.

    Parameters
    ----------
    repository : Path
        Made if it is not there.
    write : callable
        Writes all of the model to a folder: its configuration, and the version's folder.
    force : bool
        Whether a version that is there is replaced, and the configuration with it. Otherwise that
        of other versions stays, as users may have edited it.
    config : mapping of str to object, optional
        The model's configuration, which other versions have to agree with unless `force`.

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
    check_free(repository, name, version, force=force, config=config)
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
            check_free(repository, name, version, force=force, config=config)
            if place.exists():
                _keep_others(place, new, version, force=force)
            _put(new, place)
        # A process that has just begun to list the old files shall list all of them.
        time.sleep(_LISTED_S)
    finally:
        # The old folder as well; processes that have mapped its files keep them.
        shutil.rmtree(staged, ignore_errors=True)
    return place


def check_free(
    repository: Path, name: str, version: int, *, force: bool, config: Config | None = None
) -> None:
    """Check that a model can be put into a repository; errors as for `put_model`."""
    check_name(name)
    if repository.exists() and not repository.is_dir():
        raise InvalidArgumentError("the repository is not a folder", where=str(repository))
    if repository.exists():
        _check_movable(repository.resolve())
    if not force and (repository / name / str(version)).exists():
        raise InvalidArgumentError(
            "the model is in the repository already",
            where=str(repository / name / str(version)),
            argument=Argument("force"),
            fix="Export another version, or under another name, or replace it with this argument",
        )
    if not force and config is not None:
        check_alike(repository / name, version, config)


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
                fix="Give a folder in it, and the server the same; or export to a plain folder",
            ) from error


def _keep_others(place: Path, new: Path, version: int, *, force: bool) -> None:
    """Add what stays of a model to the folder that takes its place."""
    anew = {str(version), "__pycache__"}
    others = [version_number for version_number in versions_in(place) if version_number != version]
    if force or not others:
        anew |= set(_OF_ALL_VERSIONS)
    else:
        _report_kept(place, new)
        for name in _OF_ALL_VERSIONS:
            (new / name).unlink(missing_ok=True)

    def left_out(folder: str, names: list[str]) -> list[str]:
        return [n for n in names if n in anew] if Path(folder) == place else []

    shutil.copytree(place, new, copy_function=_link, ignore=left_out, dirs_exist_ok=True)
    os.utime(new)  # copied as well: servers that poll look for a later time


def _report_kept(place: Path, new: Path) -> None:
    """Warn if the served setting is not the requested one."""
    files = [folder / CONFIG_FILE for folder in (place, new)]
    if all(file.exists() for file in files) and len({file.read_bytes() for file in files}) > 1:
        _log.warning(
            "%s stays as it is, for all versions: write into it, or replace it with force",
            files[0],
        )


def _link(source: str, target: str) -> None:
    """Have the same file at another place."""
    os.link(source, target)


def _put(new: Path, place: Path) -> None:
    """Put a folder to its place, in exchange for the present one."""
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        # Without the system's help, there is nothing for a moment.
        place.rename(new.with_name(f"{new.name}.before"))
        new.rename(place)


def _exchange(folder: Path, other: Path) -> bool:
    """Let two folders change their names in one step, where the system can (Linux)."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(folder), os.fsencode(other)
    return bool(call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)
