"""Reads and writes memory at addresses, for code that Numba compiles.

Notes
-----
Kernels get addresses as plain integers: nothing is allocated, nothing can be raised, and no
part of Numba's runtime is needed by the compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import ir

from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import F32, F64, I8, I16, I32, I64, Code, CodeValue, Kind
from armpy_numba_acc.machine.call import Pointer

LoadInteger = Callable[[Pointer, int], int]
LoadFloat = Callable[[Pointer, int], Any]  # Any: NumPy and Python have floats that differ
StoreInteger = Callable[[Pointer, int, Any], None]  # Any: as above
StoreFloat = Callable[[Pointer, int, Any], None]  # Any: as above


def _make_load(kind: str, element: Kind) -> LoadFloat:
    """Make the code that loads element `index` of an array at an address."""

    @primitive(kind, WORD, WORD)
    def load(code: Code, base: CodeValue, index: CodeValue) -> CodeValue:
        return base.load(element, index)

    return load


def _make_store(kind: str, element: Kind) -> StoreFloat:
    """Make the code that stores element `index` of an array at an address."""

    @primitive(NOTHING, WORD, WORD, kind)
    def store(code: Code, base: CodeValue, index: CodeValue, value: CodeValue) -> None:
        base.store(value, index)

    return store


load_i64: LoadInteger = _make_load("int64", I64)
load_i32: LoadInteger = _make_load("int32", I32)
load_i16: LoadInteger = _make_load("int16", I16)
load_i8: LoadInteger = _make_load("int8", I8)
load_u8: LoadInteger = _make_load("uint8", I8)
load_f32: LoadFloat = _make_load("float32", F32)
load_f64: LoadFloat = _make_load("float64", F64)
store_i64: StoreInteger = _make_store("int64", I64)
store_i32: StoreInteger = _make_store("int32", I32)
store_i16: StoreInteger = _make_store("int16", I16)
store_u8: StoreInteger = _make_store("uint8", I8)
store_f32: StoreFloat = _make_store("float32", F32)
store_f64: StoreFloat = _make_store("float64", F64)

INTEGERS: Mapping[int, tuple[LoadInteger, StoreInteger]] = {
    1: (load_u8, store_u8),
    2: (load_i16, store_i16),
    4: (load_i32, store_i32),
    8: (load_i64, store_i64),
}
"""What loads and stores integers of so many bytes, or anything else as such; bytes are unsigned."""


@primitive("float32", WORD, WORD)
def load_bf16(code: Code, base: CodeValue, index: CodeValue) -> CodeValue:
    """Load element `index` of an array of bfloat16 at an address, as float32."""
    return (base.load(I16, index).unsigned(I32) << 16).as_float()


@primitive("float32", WORD)
def bits_to_f32(code: Code, bits: CodeValue) -> CodeValue:
    """A float32 whose bits are the low half of an integer; how kernels get float arguments."""
    return bits.narrowed(I32).as_float()


@primitive("float64", WORD)
def bits_to_f64(code: Code, bits: CodeValue) -> CodeValue:
    """A float64 that has an integer's bits."""
    return bits.bitcast(F64)


@primitive(NOTHING, WORD, WORD, WORD, WORD)
def call_kernel(
    code: Code, function: CodeValue, args: CodeValue, shares: CodeValue, num_shares: CodeValue
) -> None:
    """Call a compiled kernel at an address."""
    function.called(ir.VoidType(), args, shares, num_shares)


@primitive(WORD, WORD, WORD)
def call_address(code: Code, function: CodeValue, value: CodeValue) -> CodeValue:
    """Call a C function at an address, of one word or none, that gives a word or nothing."""
    return function.called(I64, value)


@primitive(WORD, WORD, WORD)
def atomic_add(code: Code, base: CodeValue, value: CodeValue) -> CodeValue:
    """Add to a 64-bit integer that other threads see; returns its previous value."""
    pointer = code.builder.inttoptr(base.value, I64.as_pointer())
    return code.of(code.builder.atomic_rmw("add", pointer, value.value, "acq_rel"))


@primitive(WORD, WORD)
def atomic_load(code: Code, base: CodeValue) -> CodeValue:
    """Read a 64-bit integer that other threads write."""
    return base.load_shared()


@primitive(NOTHING, WORD, WORD)
def atomic_store(code: Code, base: CodeValue, value: CodeValue) -> None:
    """Write a 64-bit integer that other threads read."""
    base.store_shared(value)


def stack_memory(size_bytes: int) -> Callable[[], int]:
    """Make the function that gives a kernel memory of its own, for as long as it runs.

    Unlike memory that is shared out by the thread's number, it does not depend on how many
    threads there are, or pieces of a command.
    """

    @primitive(WORD)
    def memory(code: Code) -> CodeValue:
        return code.stack(I64, -(-size_bytes // 8))

    return memory
