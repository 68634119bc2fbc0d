"""Switches what processors do with numbers too small for float32's and float64's usual form.

Notes
-----
Arithmetic on subnormal numbers takes a hundred cycles and more on many processors, so that a
network whose activations fade becomes several times slower. While a program runs, results
below the smallest normal number become zero and such operands count as zero: on x86-64 by FTZ
and DAZ of ``MXCSR``, on AArch64 by FZ of ``FPCR``. Other processors have no such switch here, and
keep subnormals. LiteRT does the same (``ruy::ScopedSuppressDenormals``).

The mode belongs to a thread. Whoever sets it puts back what it found before it returns.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
# Numba's extension interface has no types.

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.vectors import I8, I32, I64
from armpy_numba_acc.machine.isa import Isa

_MXCSR_FTZ, _MXCSR_DAZ = 1 << 15, 1 << 6
_FPCR_FZ = 1 << 24


def _read_mxcsr(builder):
    """x86-64's word of modes."""
    word = cgutils.alloca_once(builder, I32)
    function = vectors.intrinsic(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), I8.as_pointer())
    builder.call(function, (builder.bitcast(word, I8.as_pointer()),))
    return builder.zext(builder.load(word), I64)


def _write_mxcsr(builder, mode):
    """Set x86-64's word of modes."""
    word = cgutils.alloca_once(builder, I32)
    builder.store(builder.trunc(mode, I32), word)
    function = vectors.intrinsic(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), I8.as_pointer())
    builder.call(function, (builder.bitcast(word, I8.as_pointer()),))


def _read_fpcr(builder):
    """AArch64's word of modes."""
    return builder.call(vectors.intrinsic(builder, "llvm.aarch64.get.fpcr", I64), ())


def _write_fpcr(builder, mode):
    """Set AArch64's word of modes."""
    function = vectors.intrinsic(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), I64)
    builder.call(function, (mode,))


def _switch(isa: Isa):
    """How a processor's modes are read and written, and the bits that are set; None without."""
    if isa.triple.startswith("x86_64"):
        return _read_mxcsr, _write_mxcsr, _MXCSR_FTZ | _MXCSR_DAZ
    if isa.triple.startswith(("aarch64", "arm64")):
        return _read_fpcr, _write_fpcr, _FPCR_FZ
    return None


@cache
def flushing(isa: Isa):
    """Make ``flush()``: from now on the thread flushes subnormals; returns its former modes."""
    switch = _switch(isa)

    @intrinsic
    def flush(typingctx):
        signature = types.int64()

        def generate(context, builder, signature, args):
            if switch is None:
                return I64(0)
            read, write, flags = switch
            modes = read(builder)
            write(builder, builder.or_(modes, I64(flags)))
            return modes

        return signature, generate

    return flush


@cache
def restoring(isa: Isa):
    """Make ``restore(modes)``: the thread has its former modes again."""
    switch = _switch(isa)

    @intrinsic
    def restore(typingctx, modes):
        signature = types.void(types.int64)

        def generate(context, builder, signature, args):
            if switch is not None:
                switch[1](builder, args[0])
            return context.get_dummy_value()

        return signature, generate

    return restore
