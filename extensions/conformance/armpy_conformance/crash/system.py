"""System resources of this process: their use and their limits."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from armpy.errors import UnimplementedError

_STATUS = Path("/proc/self/status")
_DESCRIPTORS = Path("/proc/self/fd")

_ALLOWED_DESCRIPTORS = 4
_ALLOWED_THREADS = 2
_ALLOWED_BYTES = 64 << 20


def _status_bytes(name: str) -> int:
    """A line of the process's status in bytes; 0 where the system has none."""
    if not _STATUS.exists():
        return 0
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _num_descriptors() -> int:
    """Open descriptors; 0 where the system does not say."""
    return len(os.listdir(_DESCRIPTORS)) if _DESCRIPTORS.exists() else 0


class LeakCheck:
    """Compares threads, descriptors and memory with those at its creation."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[int, int, int]:
        gc.collect()
        return threading.active_count(), _num_descriptors(), _status_bytes("VmRSS")

    def problem(self) -> str:
        """Describe the resources that have leaked; empty if none."""
        for _ in range(20):  # threads that are at their end get a moment
            threads, descriptors, size = (
                now - before for now, before in zip(self._now(), self._before, strict=True)
            )
            if threads <= _ALLOWED_THREADS:
                break
            time.sleep(0.05)
        if threads > _ALLOWED_THREADS:
            return f"{threads} threads"
        if descriptors > _ALLOWED_DESCRIPTORS:
            return f"{descriptors} open descriptors"
        return f"{size >> 20} MiB" if size > _ALLOWED_BYTES else ""


if sys.platform == "win32":

    @contextmanager
    def address_space_limit(more_bytes: int) -> Iterator[None]:
        """Refuse: the system limits no process from within.

        Raises
        ------
        UnimplementedError
            Always.
        """
        raise UnimplementedError("Windows has no limit of a process's address space")
        yield

else:
    import resource

    @contextmanager
    def address_space_limit(more_bytes: int) -> Iterator[None]:
        """Let the process have this much additional address space, for a block."""
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_status_bytes("VmSize") + more_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
