"""The least time that commands can take on this machine.

References
----------
Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy as np

from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.alignment import address_of, aligned
from armpy_numba_acc.machine.call import Work
from armpy_numba_acc.machine.execution import word_of
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.program import CommandInfo
from armpy_numba_acc.runtime.threads import FUNCTION
from armpy_numba_acc.store.objects import kernel_addresses

_BYTE_PRODUCTS = (Work.BYTES, Work.BYTE_WINDOWS, Work.BYTE_WEIGHTS)

_SMALLEST_BYTES = 1 << 16
_LARGEST_BYTES = 1 << 26
_REPEATS = 10_000
_ATTEMPTS = 10


def roofline_us(info: CommandInfo, isa: Isa, num_threads: int) -> float:
    """Microseconds that a command takes at least, were it bound by arithmetic or memory alone.

    Notes
    -----
    What this machine can do is measured when it is first asked for: multiplications and
    additions in registers, and copies of as many bytes as the command touches.
    """
    kind = "u8" if info.work in _BYTE_PRODUCTS else "f32"
    arithmetic_us = info.num_operations / (_operations_per_us(kind, isa) * num_threads)
    share_bytes = info.num_bytes / num_threads
    return max(arithmetic_us, share_bytes / _bytes_per_us(_rounded(share_bytes)))


def _rounded(size_bytes: float) -> int:
    """One of few sizes, at least as large where there is one."""
    rounded = _SMALLEST_BYTES
    while rounded < min(size_bytes, _LARGEST_BYTES):
        rounded *= 4
    return rounded


@cache
def _operations_per_us(kind: str, isa: Isa) -> float:
    """Most operations that one thread can do."""
    kernel = calls.Peak(kind, 0, 0, 0).kernel
    function = FUNCTION(kernel_addresses([kernel], isa)[kernel])
    memory = aligned(4096)
    arguments = np.array(calls.Peak(kind, address_of(memory), _REPEATS, 0).words, np.int64)
    best_us = _least_us(lambda: function(address_of(arguments), 0, 1))
    return float(arguments[word_of(calls.Peak, "num_operations")]) / best_us


@cache
def _bytes_per_us(size_bytes: int) -> float:
    """Bytes that one thread reads and writes where they are so many."""
    source, target = np.zeros(size_bytes // 2, np.uint8), np.ones(size_bytes // 2, np.uint8)
    return size_bytes / _least_us(lambda: np.copyto(target, source))


def _least_us(function: Callable[[], object]) -> float:
    """The shortest of some calls."""
    durations_us = []
    for _ in range(_ATTEMPTS):
        begin_ns = time.perf_counter_ns()
        function()
        durations_us.append((time.perf_counter_ns() - begin_ns) / 1000)
    return min(durations_us)
