"""What threads that wait for each other need, for code that Numba compiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

from llvmlite import ir

from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import I32, I64, Code, Value
from armpy_numba_acc.machine.isa import Isa


@primitive(WORD, WORD, WORD, WORD)
def compare_and_swap(code: Code, base: Value, expected: Value, value: Value) -> Value:
    """Write a 64-bit integer if it is as expected; returns what it was."""
    builder = code.builder
    pointer = builder.inttoptr(base.value, I64.as_pointer())
    pair = builder.cmpxchg(pointer, expected.value, value.value, "acq_rel", "acquire")
    return code.of(builder.extract_value(pair, 0))


@cache
def relaxing(isa: Isa) -> Callable[[], None]:
    """Make the function that tells the processor that the thread waits in a loop."""

    @primitive(NOTHING)
    def relax(code: Code) -> None:
        if isa.triple.startswith("x86_64"):
            code.call("llvm.x86.sse2.pause", None)
        elif isa.triple.startswith(("aarch64", "arm64")):
            code.call("llvm.aarch64.hint", None, code.constant(I32, 1))

    return relax


@primitive(WORD)
def clock_ns(code: Code) -> Value:
    """Nanoseconds of the clock that `time.perf_counter` reads."""
    pair = code.stack(ir.ArrayType(I64, 2))
    pointer = code.of(code.builder.inttoptr(pair.value, I64.as_pointer()))
    code.call("clock_gettime", I32, code.constant(I32, time.CLOCK_MONOTONIC), pointer)
    return pair.load(I64, 0) * 10**9 + pair.load(I64, 1)
