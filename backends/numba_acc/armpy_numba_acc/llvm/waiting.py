"""What threads that wait for each other need, for code that Numba compiles."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"
# Numba's extension interface has no types.

from __future__ import annotations

import time
from functools import cache

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.machine.isa import Isa

_I32, _I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def compare_and_swap(typingctx, base, expected, value):
    """Write a 64-bit integer if it is as expected; returns what it was."""
    signature = types.int64(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _I64.as_pointer())
        pair = builder.cmpxchg(pointer, args[1], args[2], "acq_rel", "acquire")
        return builder.extract_value(pair, 0)

    return signature, generate


@cache
def relaxing(isa: Isa):
    """Make the function that tells the processor that the thread waits in a loop."""

    @intrinsic
    def relax(typingctx):
        signature = types.void()

        def generate(context, builder, signature, args):
            if isa.triple.startswith("x86_64"):
                kind = ir.FunctionType(ir.VoidType(), ())
                name = "llvm.x86.sse2.pause"
                builder.call(cgutils.get_or_insert_function(builder.module, kind, name), ())
            elif isa.triple.startswith(("aarch64", "arm64")):
                kind = ir.FunctionType(ir.VoidType(), (_I32,))
                name = "llvm.aarch64.hint"
                hint = cgutils.get_or_insert_function(builder.module, kind, name)
                builder.call(hint, (_I32(1),))
            return context.get_dummy_value()

        return signature, generate

    return relax


@intrinsic
def clock_ns(typingctx):
    """Nanoseconds of the clock that `time.perf_counter` reads."""
    signature = types.int64()

    def generate(context, builder, signature, args):
        pair = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        kind = ir.FunctionType(_I32, (_I32, pair.type))
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, (_I32(time.CLOCK_MONOTONIC), pair))
        seconds = builder.load(cgutils.gep_inbounds(builder, pair, 0, 0))
        return builder.add(
            builder.mul(seconds, _I64(10**9)),
            builder.load(cgutils.gep_inbounds(builder, pair, 0, 1)),
        )

    return signature, generate
