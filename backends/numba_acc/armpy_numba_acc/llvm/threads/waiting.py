"""Waiting of threads for each other, in code that Numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import I32, I64, Code, CodeValue
from armpy_numba_acc.machine.isa import Isa

SPINS = 1 << 12
"""How often a thread looks before it lets others have the processor."""


@primitive(WORD, WORD, WORD, WORD)
def compare_and_swap(
    code: Code, base: CodeValue, expected: CodeValue, value: CodeValue
) -> CodeValue:
    """Write a 64-bit integer if it is as expected; returns its previous value."""
    return base.exchanged(expected, value)


@primitive(NOTHING, WORD, WORD)
def take_lock(code: Code, acquire: CodeValue, lock: CodeValue) -> None:
    """Sleep until a lock of the interpreter's is free, and take it."""
    no_signals = code.constant(I32, 0)
    acquire.called(I32, lock, code.integer(-1), no_signals)


def pause(code: Code, isa: Isa, spins: CodeValue) -> None:
    """Let a moment pass for a thread that waits, and has looked so often."""
    # Spinning first: the system takes microseconds to switch, most waits are shorter.
    _relax(code, isa)
    when(spins >= SPINS, lambda: [_yield(code, isa)])


def read_clock(code: Code, isa: Isa) -> CodeValue:
    """Nanoseconds of the clock that `time.perf_counter` reads."""
    if _is_windows(isa):
        return _windows_clock_ns(code)
    pair = code.stack(ir.ArrayType(I64, 2))
    clock = _MACOS_CLOCK if "apple" in isa.triple else _LINUX_CLOCK
    code.call("clock_gettime", I32, code.constant(I32, clock), _pointer(pair))
    return pair.load(I64, 0) * 10**9 + pair.load(I64, 1)


def _relax(code: Code, isa: Isa) -> None:
    """Emit the processor's hint that the thread waits in a loop."""
    if isa.triple.startswith("x86_64"):
        code.call("llvm.x86.sse2.pause", None)
    elif isa.triple.startswith(("aarch64", "arm64")):
        code.call("llvm.aarch64.hint", None, code.constant(I32, 1))


def _yield(code: Code, isa: Isa) -> CodeValue:
    """Let other threads have the processor."""
    return code.call("SwitchToThread" if _is_windows(isa) else "sched_yield", I32)


@cache
def relaxing(isa: Isa) -> Callable[[], None]:
    """Make the function that hints to the processor that the thread waits in a loop."""

    @primitive(NOTHING)
    def relax(code: Code) -> None:
        _relax(code, isa)

    return relax


@cache
def clock_of(isa: Isa) -> Callable[[], int]:
    """Make ``clock_ns()``; see `read_clock`."""

    @primitive(WORD)
    def clock_ns(code: Code) -> CodeValue:
        return read_clock(code, isa)

    return clock_ns


_LINUX_CLOCK, _MACOS_CLOCK = 1, 8
"""``CLOCK_MONOTONIC``, and ``CLOCK_UPTIME_RAW``, which is what ``mach_absolute_time`` counts."""


def _windows_clock_ns(code: Code) -> CodeValue:
    """Ticks as nanoseconds, in two parts: all of them times 10^9 would not fit."""
    ticks, per_second = (
        _query(code, f"QueryPerformance{name}") for name in ("Counter", "Frequency")
    )
    return ticks / per_second * 10**9 + ticks % per_second * 10**9 / per_second


def _query(code: Code, name: str) -> CodeValue:
    """A number that a function of Windows writes."""
    room = code.stack(I64)
    code.call(name, I32, _pointer(room))
    return room.load(I64)


def _pointer(address: CodeValue) -> CodeValue:
    """An address as functions of the system take it."""
    return address.converted("inttoptr", I64.as_pointer())


def _is_windows(isa: Isa) -> bool:
    return "windows" in isa.triple
