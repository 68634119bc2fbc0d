"""Peak arithmetic: as many multiplications and additions as the processor can do."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.pointers import store_i64
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import F32, I32, Code, Value, vector
from armpy_numba_acc.machine.calls.measuring import Peak
from armpy_numba_acc.machine.execution import word_of
from armpy_numba_acc.machine.isa import Isa

_TOTALS = 10
"""Sums that do not wait for each other: enough to hide how long one instruction takes."""

_NUM_OPERATIONS = word_of(Peak, "num_operations")


def make(isa: Isa, kind: str) -> Callable[[int, int, int], None]:
    """Make the kernel for products of ``f32`` or of bytes (``u8``)."""
    is_float = kind == "f32"
    element = vector(F32 if is_float else I32, isa.lanes)
    num_operations = _TOTALS * 2 * isa.lanes * (1 if is_float else 4)
    read = reader(Peak)

    @primitive(NOTHING, WORD, WORD)
    def multiply(code: Code, memory: Value, repeats: Value) -> None:
        x, y = memory.load(element, 0), memory.load(element, 1)
        dots = dot_products(isa)
        if not is_float:
            x, y = dots.elements(x), dots.weights(memory, 1)

        def turn(_: Value, totals: list[Value]) -> list[Value]:
            if is_float:
                return [total.times_plus(x, y) for total in totals]
            return [dots.add(total, x, y) for total in totals]

        firsts = [memory.load(element, 2 + number) for number in range(_TOTALS)]
        for number, total in enumerate(loop(code, repeats, firsts, turn)):
            memory.store(total, 2 + number)

    def peak(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        multiply(call.memory, call.repeats)
        store_i64(args, _NUM_OPERATIONS, call.repeats * num_operations)

    return peak
