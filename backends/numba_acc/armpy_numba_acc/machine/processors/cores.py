"""Cores: how many threads may run at the same time, and where, on Linux and other systems."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING

from armpy_numba_acc.machine import processors

if TYPE_CHECKING:  # what `processors` imports when it is asked for
    import armpy_numba_acc.machine.processors.topology  # noqa: F401 - see `features`

MOST_THREADS = 256
"""Maximum number of threads per execution."""


def usable_cores(root: str | os.PathLike[str] = "/", cpus: Collection[int] | None = None) -> int:
    """Cores that this process may use.

    Shares are rounded down: one thread more than there is time for stops with all others as soon
    as the time of a period is used up, and those that wait for it burn the next one's. The least
    limit of a group and of those around it holds. Sets of processors (cpuset) are a part of what
    the operating system says.

    Parameters
    ----------
    root
        Of the file system.
    cpus
        Processors that its threads may run on; else the operating system is asked.

    Returns
    -------
    int
        At least 1. Processors that are threads of one core count once, and a control group
        that allows a part of the time counts as so many whole cores.
    """
    if cpus is None:
        if sys.platform != "linux":
            return processors.topology.num_cores()
        cpus = os.sched_getaffinity(0)
    cores = {_siblings(root, cpu) for cpu in cpus}
    return max(1, int(min([len(cores), *_limits(root)])))


def keep_off(thread: int, processor: int) -> None:
    """Keep a thread of this process off a processor, as far as it may run on others."""
    if sys.platform == "linux":
        others = os.sched_getaffinity(0) - {processor}
        if others:
            with contextlib.suppress(OSError):  # then it stays where it is
                os.sched_setaffinity(thread, others)


def current_processor() -> int | None:
    """Return the calling thread's processor; None if threads cannot be placed here."""
    function = _function_for_processor()
    return None if function is None else function()


@cache
def _function_for_processor() -> Callable[[], int] | None:
    if sys.platform != "linux":
        return None
    function: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return function


def _siblings(root: str | os.PathLike[str], cpu: int) -> str:
    """Return the processors that share each one's core; a core of its own if it is not known."""
    path = f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    return _text(os.path.join(root, path)) or str(cpu)


def _limits(root: str | os.PathLike[str]) -> Iterator[float]:
    """Processors' worth of time that the control groups of this process allow."""
    mounts = os.path.join(root, "sys/fs/cgroup")
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            # Beside groups of the first version, those of the second one are a folder deeper.
            for mount in (mounts, f"{mounts}/unified"):
                for folder in _with_parents(mount, path):
                    yield from _share(*_text(f"{folder}/cpu.max").split()[:2])
        elif "cpu" in controllers.split(","):
            for mount in dict.fromkeys((f"{mounts}/{controllers}", f"{mounts}/cpu")):
                for folder in _with_parents(mount, path):
                    quota, period = (
                        _text(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period")
                    )
                    yield from _share(quota, period)


def _with_parents(mount: str, path: str) -> Iterator[str]:
    """Folders of a control group and of those around it."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for length in range(len(parts) + 1):
        yield "/".join((mount, *parts[:length]))


def _share(quota: str = "", period: str = "") -> Iterator[float]:
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        yield int(quota) / int(period)


def _text(path: str) -> str:
    """A file's text; empty if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
