"""Confinement of a worker, on POSIX and Windows: rights go, memory gets a limit."""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

if sys.platform == "linux":
    from armpy.core.processes.linux_rights import give_up_rights
else:

    def give_up_rights(writable: Sequence[str]) -> dict[str, str]:
        """Give up nothing: other systems have no such rights to give up."""
        return {}


NOTHING_IN_FORCE = {
    "files": "not confined",
    "network": "not confined",
    "signals": "not confined",
}
"""The warning where rights cannot be given up."""

_NO_LIMIT = "no limit"
_in_force: dict[str, str] = {}


def confine(
    *,
    memory_bytes: int,  # limit of the process's own memory; none if 0
    rights: bool,  # whether to give up rights
    writable: Sequence[str],  # directories that can be written to, armpy's cache besides
) -> None:
    """Confine this process, before it has threads or loads anything of others."""
    _in_force.update(_limit(memory_bytes))
    # Its report names the thread in which the worker died.
    faulthandler.enable()
    _in_force.update(_give_up_rights(writable) if rights else NOTHING_IN_FORCE)


def in_force() -> dict[str, str]:
    """Return the limits of this process and the rights that it has given up, by name, in words.

    It is empty outside of workers.
    """
    return dict(_in_force)


def _memory_text(limit_bytes: int) -> str:
    return f"at most {limit_bytes >> 20} MiB" if limit_bytes else _NO_LIMIT


if sys.platform == "win32":

    def _limit(memory_bytes: int) -> dict[str, str]:
        """What the application's job limits: it is in force from the start."""
        return {
            "ends with the application": "with all it has started",
            "memory": _memory_text(memory_bytes),
            "core dumps": "as the system is set up",
        }

else:
    import resource

    from armpy.core.processes.keeper import adopts

    def _limit(memory_bytes: int) -> dict[str, str]:
        """Limit the process's own memory, and what a crash writes; what is in force."""
        with suppress(OSError):
            # Linux ends this process before the application: this is the highest value.
            Path("/proc/self/oom_score_adj").write_text("1000")
        memory = _memory_text(memory_bytes)
        if memory_bytes:  # memory shared with others does not count
            memory = _set_limit(resource.RLIMIT_DATA, memory_bytes, memory, _NO_LIMIT)
        return {
            "ends with the application": "with all it has started" if adopts() else "at once",
            "memory": memory,
            # A crash does not write the process's memory to a file.
            "core dumps": _set_limit(resource.RLIMIT_CORE, 0, "none", "allowed"),
        }

    def _set_limit(kind: int, limit: int, done: str, failed: str) -> str:
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError) as error:
            return f"{failed}: {error}"
        return done


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


def _give_up_rights(writable: Sequence[str]) -> dict[str, str]:
    """Give up writing to files outside some directories, the network, and signals to others."""
    folders = [*writable]
    if (cache := _cache()) is not None:
        folders.insert(0, str(cache))
        # For imports here, and for programs that it starts.
        tempfile.tempdir = os.environ["TMPDIR"] = str(cache / "tmp")
    return NOTHING_IN_FORCE | give_up_rights(folders)
