"""Switches what processors do with numbers too small for float32's and float64's usual form.

Notes
-----
Arithmetic on subnormal numbers takes a hundred cycles and more on many processors, so that a
network whose activations fade becomes several times slower. While a program runs, results
below the smallest normal number become zero and such operands count as zero: on x86-64 by FTZ
and DAZ of ``MXCSR``, on AArch64 by FZ of ``FPCR``. Other processors have no such switch here, and
keep subnormals. LiteRT does the same (``ruy::ScopedSuppressDenormals``).

The mode belongs to a thread. A function that sets it restores it before it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import I8, I32, I64, Code, CodeValue
from armpy_numba_acc.machine.isa import Isa

_MXCSR_FTZ, _MXCSR_DAZ = 1 << 15, 1 << 6
_FPCR_FZ = 1 << 24

_Switch = tuple[Callable[[Code], CodeValue], Callable[[Code, CodeValue], None], int]
"""How a processor's modes are read and written, and the bits that are set."""


def _read_mxcsr(code: Code) -> CodeValue:
    """x86-64's word of modes."""
    word = code.stack(I32)
    code.call("llvm.x86.sse.stmxcsr", None, _pointer(word))
    return word.load(I32).unsigned(I64)


def _write_mxcsr(code: Code, mode: CodeValue) -> None:
    """Set x86-64's word of modes."""
    word = code.stack(I32)
    word.store(mode.narrowed(I32))
    code.call("llvm.x86.sse.ldmxcsr", None, _pointer(word))


def _pointer(address: CodeValue) -> CodeValue:
    """An address as the processor's instructions take it."""
    return address.of(address.code.builder.inttoptr(address.value, I8.as_pointer()))


def _read_fpcr(code: Code) -> CodeValue:
    """AArch64's word of modes."""
    return code.call("llvm.aarch64.get.fpcr", I64)


def _write_fpcr(code: Code, mode: CodeValue) -> None:
    """Set AArch64's word of modes."""
    code.call("llvm.aarch64.set.fpcr", None, mode)


def _switch(isa: Isa) -> _Switch | None:
    """See `_Switch`; None for processors without."""
    if isa.triple.startswith("x86_64"):
        return _read_mxcsr, _write_mxcsr, _MXCSR_FTZ | _MXCSR_DAZ
    if isa.triple.startswith(("aarch64", "arm64")):
        return _read_fpcr, _write_fpcr, _FPCR_FZ
    return None


@cache
def flushing(isa: Isa) -> Callable[[], int]:
    """Make ``flush()``: from now on the thread flushes subnormals; returns its former modes."""
    switch = _switch(isa)

    @primitive(WORD)
    def flush(code: Code) -> CodeValue:
        if switch is None:
            return code.integer(0)
        read, write, flags = switch
        modes = read(code)
        # All other modes stay the caller's: how numbers are rounded, and which errors are masked.
        write(code, modes | flags)
        return modes

    return flush


@cache
def restoring(isa: Isa) -> Callable[[int], None]:
    """Make ``restore(modes)``: the thread has its former modes again."""
    switch = _switch(isa)

    @primitive(NOTHING, WORD)
    def restore(code: Code, modes: CodeValue) -> None:
        if switch is not None:
            switch[1](code, modes)

    return restore
