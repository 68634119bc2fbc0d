"""Growth of the process under repetition: objects, files, threads, memory."""

from __future__ import annotations

import ctypes
import gc
import os
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from armpy.backend import ITensorHandle
from armpy.core.dataclass import dataclass
from armpy_conformance.contract.case import ViolationError

_WARM = 4
_LEAST_COUNT = 12
_ROUNDS = 8
_FULL_POOL = 600
"""Repetitions after which a bounded pool or cache counts as full."""

_SETTLING_ROUNDS = 3
_PAUSE_S = 0.1
"""Between the first rounds, and longer each time: other threads may be at work for a while."""

_PROCESS = Path("/proc/self")
_KINDS = ("RssAnon", "RssShmem", "VmSwap")
"""Kinds of memory in the process's status, in KiB."""

_NOISE_BYTES = 1 << 19
"""Resident memory that comes and goes without a leak."""

_C_LIBRARY = ctypes.CDLL(None) if os.name == "posix" else None
_release_free_memory = getattr(_C_LIBRARY, "malloc_trim", None)
"""The C library's `malloc_trim`, where it has one."""


class _HeapFigures(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


_heap_figures = getattr(_C_LIBRARY, "mallinfo2", None)
"""The C library's `mallinfo2`, where it has one."""
if _heap_figures is not None:
    _heap_figures.restype = _HeapFigures


@dataclass(frozen=True, slots=True)
class Repetition:
    """An action that must not leave anything when it is repeated."""

    action: Callable[[], object]
    name: str  # of many, for messages
    count: int  # repetitions between two measurements, fewer if they take longer than `budget_s`
    object_bytes: int = 48
    """Memory of Python and NumPy that each may keep: less is the interpreter's own."""
    data_bytes: int = 0
    """Size of the largest object that each could keep; 0 if it is too small to be found in the
    process's memory.
    """
    budget_s: float = 0.5


def check_growth(repetition: Repetition) -> None:
    """Raise a `ViolationError` if each round of repetitions leaves more than the one before.

    Notes
    -----
    A pool or a cache that fills up grows in some rounds only. One round without growth shows the
    bound; of the process's memory two in a row, as what others give back hides one round's growth.
    """
    count = _affordable(repetition)
    needed = 2 if repetition.data_bytes else 1
    num_clean, problem = 0, ""
    with _frozen_objects(), _tracing(not repetition.data_bytes):
        for number in range(max(_ROUNDS, -(-_FULL_POOL // (count + _WARM)))):
            time.sleep(_PAUSE_S * number if number < _SETTLING_ROUNDS else 0)
            for _ in range(_WARM):
                repetition.action()
            before = _gauge()
            for _ in range(count):
                repetition.action()
            grown = _grown(before, _gauge(), repetition, count)
            num_clean, problem = (0, grown) if grown else (num_clean + 1, problem)
            if num_clean == needed:
                return
    if num_clean:
        return
    raise ViolationError(f"after {count} {repetition.name} there are {problem}")


def _affordable(repetition: Repetition) -> int:
    """The number of repetitions that the time allows."""
    repetition.action()
    started = time.perf_counter()
    for _ in range(_WARM):
        repetition.action()
    duration_s = (time.perf_counter() - started) / _WARM
    affordable = int(repetition.budget_s / max(duration_s, 1e-9))
    return min(repetition.count, max(affordable, _LEAST_COUNT))


@contextmanager
def _frozen_objects() -> Iterator[None]:
    """Leave out all present objects, garbage too, when garbage is collected and counted.

    Present garbage stays until the end, so no gauge sees that it goes; collecting it first takes
    a tenth of a second beside the kit's cases.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _tracing(wanted: bool) -> Iterator[None]:
    """Trace allocations, which makes the interpreter several times slower."""
    if not wanted or tracemalloc.is_tracing():
        yield
        return
    tracemalloc.start(1)
    try:
        yield
    finally:
        tracemalloc.stop()


def _grown(
    before: Mapping[str, int], after: Mapping[str, int], repetition: Repetition, count: int
) -> str:
    """The names and numbers of what there is more of; empty without growth."""
    few = max(4, count // 8)
    limits = {
        "tensor handles": few,
        "open files": few,
        "threads": few,
        "child processes": few,
        "bytes": count * repetition.object_bytes,
    }
    if repetition.data_bytes:
        data = max(count * repetition.data_bytes // 4, _NOISE_BYTES)
        limits |= {"bytes of the process": data, "bytes of the C library's heap": data}
    more = {name: after[name] - before[name] for name in limits}
    return " and ".join(f"{more[n]} more {n}" for n, limit in limits.items() if more[n] >= limit)


def _gauge() -> dict[str, int]:
    """The present numbers of what a backend could keep by mistake."""
    gc.collect()
    if _release_free_memory is not None:
        # Memory that was freed but stays resident would hide new allocations.
        _release_free_memory(0)
    counts = Counter(map(type, gc.get_objects()))
    handles = sum(count for kind, count in counts.items() if ITensorHandle in kind.__mro__)
    return {
        "tensor handles": handles,
        "open files": num_open_files(),
        "threads": _num_entries("task"),
        "child processes": _num_children(),
        "bytes": tracemalloc.get_traced_memory()[0],
        "bytes of the process": memory_bytes(),
        "bytes of the C library's heap": heap_bytes(),
    }


def num_open_files() -> int:
    """Number of files that the process has open; 0 if the system does not say."""
    return _num_entries("fd")


def _num_entries(folder: str) -> int:
    """Number of entries in a folder of the process; 0 if the system has none."""
    with suppress(OSError):
        return len(os.listdir(_PROCESS / folder))
    return 0


def _num_children() -> int:
    """Number of child processes, ended ones included; 0 if the system does not say."""
    count = 0
    with suppress(OSError):  # threads end meanwhile
        for file in _PROCESS.glob("task/*/children"):
            count += len(file.read_text("ascii").split())
    return count


def heap_bytes() -> int:
    """Memory that the C library has handed out; 0 if it does not say.

    Unlike the process's memory, it does not count freed memory that stays resident, as the end
    of a thread's heap does.
    """
    if _heap_figures is None:
        return 0
    figures = _heap_figures()
    return int(figures.uordblks) + int(figures.hblkhd)


def memory_bytes() -> int:
    """Memory of the process without pages of files; 0 if the system does not say.

    Pages of files, such as those of libraries, come and go as the system likes.
    """
    with suppress(OSError):
        lines = (_PROCESS / "status").read_text("ascii", "replace").splitlines()
        sizes = dict(line.split(":", 1) for line in lines if ":" in line)
        return sum(int(sizes[name].split()[0]) << 10 for name in _KINDS if name in sizes)
    return 0
