"""Reads and writes memory at addresses, for code that Numba compiles.

Notes
-----
Kernels get addresses as plain integers: nothing is allocated, nothing can be raised, and no
part of Numba's runtime is needed by the compiled code.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"
# Numba's extension interface has no types.

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I64 = ir.IntType(64)


def _element(builder, base, index, element):
    """Pointer to element `index`; written so that LLVM sees what loops walk over."""
    return builder.gep(builder.inttoptr(base, element.as_pointer()), (index,))


def _make_load(kind, element, result=None):
    """An intrinsic that loads element `index` of an array at an address."""

    @intrinsic
    def load(typingctx, base, index):
        signature = (result or kind)(types.int64, types.int64)

        def generate(context, builder, signature, args):
            base, index = args
            pointer = _element(builder, base, index, element)
            return builder.load(pointer, align=context.get_abi_sizeof(element))

        return signature, generate

    return load


def _make_store(kind, element):
    """An intrinsic that stores element `index` of an array at an address."""

    @intrinsic
    def store(typingctx, base, index, value):
        signature = types.void(types.int64, types.int64, kind)

        def generate(context, builder, signature, args):
            base, index, value = args
            pointer = _element(builder, base, index, element)
            builder.store(value, pointer, align=context.get_abi_sizeof(element))
            return context.get_dummy_value()

        return signature, generate

    return store


load_i64 = _make_load(types.int64, _I64)
load_i32 = _make_load(types.int32, ir.IntType(32))
load_i16 = _make_load(types.int16, ir.IntType(16))
load_i8 = _make_load(types.int8, ir.IntType(8))
load_u8 = _make_load(types.uint8, ir.IntType(8))
load_f32 = _make_load(types.float32, ir.FloatType())
load_f64 = _make_load(types.float64, ir.DoubleType())
store_i64 = _make_store(types.int64, _I64)
store_i32 = _make_store(types.int32, ir.IntType(32))
store_i16 = _make_store(types.int16, ir.IntType(16))
store_u8 = _make_store(types.uint8, ir.IntType(8))
store_f32 = _make_store(types.float32, ir.FloatType())
store_f64 = _make_store(types.float64, ir.DoubleType())


@intrinsic
def load_bf16(typingctx, base, index):
    """Load element `index` of an array of bfloat16 at an address, as float32."""
    signature = types.float32(types.int64, types.int64)

    def generate(context, builder, signature, args):
        base, index = args
        halves = builder.load(_element(builder, base, index, ir.IntType(16)), align=2)
        wide = builder.zext(halves, ir.IntType(32))
        return builder.bitcast(builder.shl(wide, ir.Constant(wide.type, 16)), ir.FloatType())

    return signature, generate


@intrinsic
def bits_to_f32(typingctx, bits):
    """A float32 whose bits are the low half of an integer; how kernels get float arguments."""
    signature = types.float32(types.int64)

    def generate(context, builder, signature, args):
        low = builder.trunc(args[0], ir.IntType(32))
        return builder.bitcast(low, ir.FloatType())

    return signature, generate


@intrinsic
def call_kernel(typingctx, function, args, thread, num_threads):
    """Call a compiled kernel at an address."""
    signature = types.void(types.int64, types.int64, types.int64, types.int64)

    def generate(context, builder, signature, values):
        function, args, thread, num_threads = values
        kind = ir.FunctionType(ir.VoidType(), (_I64, _I64, _I64))
        builder.call(builder.inttoptr(function, kind.as_pointer()), (args, thread, num_threads))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def call_address(typingctx, function, value):
    """Call a C function at an address, of one word or none, that gives a word or nothing."""
    signature = types.int64(types.int64, types.int64)

    def generate(context, builder, signature, values):
        kind = ir.FunctionType(_I64, (_I64,))
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])

    return signature, generate


@intrinsic
def atomic_add(typingctx, base, value):
    """Add to a 64-bit integer that other threads see; returns what it was."""
    signature = types.int64(types.int64, types.int64)

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _I64.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return signature, generate


@intrinsic
def atomic_load(typingctx, base):
    """Read a 64-bit integer that other threads write."""
    signature = types.int64(types.int64)

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _I64.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return signature, generate


@intrinsic
def atomic_store(typingctx, base, value):
    """Write a 64-bit integer that other threads read."""
    signature = types.void(types.int64, types.int64)

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _I64.as_pointer())
        builder.store_atomic(args[1], pointer, "release", 8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def yield_thread(typingctx):
    """Let other threads have the processor."""
    signature = types.void()

    def generate(context, builder, signature, args):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.IntType(32), ()), "sched_yield"
        )
        builder.call(function, ())
        return context.get_dummy_value()

    return signature, generate


def stack_memory(size_bytes):
    """Make the function that gives a kernel memory of its own, for as long as it runs.

    Notes
    -----
    Unlike memory that is shared out by the thread's number, it does not depend on how many
    threads there are, or pieces of a command.
    """

    @intrinsic
    def memory(typingctx):
        signature = types.int64()

        def generate(context, builder, signature, args):
            room = cgutils.alloca_once(builder, ir.ArrayType(_I64, -(-size_bytes // 8)))
            return builder.ptrtoint(room, _I64)

        return signature, generate

    return memory
