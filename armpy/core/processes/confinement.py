"""Confinement of a worker: rights that no backend needs go, memory gets a limit."""

from __future__ import annotations

import faulthandler
import os
import resource
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from armpy.core.processes.keeper import adopts
from armpy.core.processes.landlock import NOTHING_IN_FORCE, restrict

_NO_LIMIT = "no limit"
_in_force: dict[str, str] = {}


def confine(*, memory_bytes: int | None, rights: bool, writable: Sequence[str]) -> None:
    """Confine this process, before it has threads or loads anything of others.

    Parameters
    ----------
    memory_bytes : int, optional
        Limit of the process's own memory; three quarters of the machine's if None, none if 0.
    rights : bool
        Whether to give up rights.
    writable : sequence of str
        Directories that can be written to, armpy's cache besides.
    """
    _in_force.update(
        {
            "ends with the application": "with all it has started" if adopts() else "at once",
            "memory": _limit_memory(memory_bytes),
            "core dumps": _leave_no_core_dump(),
        }
    )
    _be_first_to_go()
    # Its report names the thread in which the worker died.
    faulthandler.enable()
    _in_force.update(_give_up_rights(writable) if rights else NOTHING_IN_FORCE)


def in_force() -> dict[str, str]:
    """What this process has given up, by name; empty if it is no worker."""
    return dict(_in_force)


def _give_up_rights(writable: Sequence[str]) -> dict[str, str]:
    folders = [*writable]
    if (cache := _cache()) is not None:
        folders.insert(0, str(cache))
        # For what is imported here, and for programs that it starts.
        tempfile.tempdir = os.environ["TMPDIR"] = str(cache / "tmp")
    return restrict(folders)


def _limit_memory(limit_bytes: int | None) -> str:
    """Limit what the process may have of its own; what is shared with others does not count."""
    if limit_bytes is None:
        try:
            # A quarter is left to the application and the system.
            limit_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
        except (OSError, ValueError):
            return _NO_LIMIT
    if limit_bytes == 0:
        return _NO_LIMIT
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    except (OSError, ValueError) as error:
        return f"{_NO_LIMIT}: {error}"
    return f"at most {limit_bytes >> 20} MiB"


def _leave_no_core_dump() -> str:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError) as error:
        return f"allowed: {error}"
    return "none"


def _be_first_to_go() -> None:
    with suppress(OSError):
        # The highest value, which the system looks for first.
        Path("/proc/self/oom_score_adj").write_text("1000")


def _cache() -> Path | None:
    """The cache of armpy, with a folder for temporary files; None if the user has no home."""
    # NumPy's threads would be there before rights are given up if more were imported first.
    from armpy.core.file_ownership import cache_directory, make_own_folder  # noqa: PLC0415

    try:
        cache = cache_directory()
    except RuntimeError:
        return None
    with suppress(OSError):
        make_own_folder(cache / "tmp")
    return cache
