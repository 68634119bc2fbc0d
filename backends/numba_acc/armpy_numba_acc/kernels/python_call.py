"""CPython's way into a program: takes the addresses from arrays and runs the executor on them."""

from __future__ import annotations

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import KernelWithResult
from armpy_numba_acc.llvm.pointers import call_address, call_kernel, load_i64, store_i64
from armpy_numba_acc.machine.execution import NOT_RUN, ExecutionRecord, Slot
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.layout import num_words, word_of

_FINISHED = word_of(ExecutionRecord, "finished")
_SLOT_BYTES = 8 * num_words(Slot)


def make(isa: Isa, header_bytes: int) -> KernelWithResult:
    """Make a function that CPython can call (``METH_FASTCALL``).

    Its owner is the array that holds an `ExecutionRecord`. It gives a Python integer: how many
    commands it has not run, or `NOT_RUN`.

    Parameters
    ----------
    header_bytes
        Of every Python object. Its last word is the object's type. After it, arrays have the
        address of their elements first of all (`PyArrayObject_fields`).
    """
    read, read_slot = reader(ExecutionRecord), reader(Slot)

    def python_call(owner: int, arrays: int, num_arrays: int) -> int:
        execution = load_i64(owner + header_bytes, 0)
        call = read(execution)
        left, number = NOT_RUN, 0
        if num_arrays == call.num_tensors:
            # Nothing is written before every array is known to be one.
            while number < num_arrays:
                if load_i64(load_i64(arrays, number) + header_bytes, -1) != call.array_type:
                    break
                number += 1
        if number == call.num_tensors:
            for index in range(call.num_slots):
                slot = read_slot(call.slots + _SLOT_BYTES * index)
                array = load_i64(arrays, slot.number)
                elements = load_i64(array + header_bytes, 0)
                store_i64(slot.target, 0, elements + slot.offset)
            state = 0
            if call.let_others != 0:
                state = call_address(call.let_others, 0)
            call_kernel(call.executor, execution, 0, call.num_threads)
            if call.let_others != 0:
                call_address(call.take_back, state)
            left = call.num_commands - load_i64(execution, _FINISHED)
        result: int = call_address(call.to_python, left)
        return result

    return KernelWithResult(python_call)
