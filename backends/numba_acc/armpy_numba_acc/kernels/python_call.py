"""What Python calls: takes the addresses from arrays and runs a program on them."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Returning
from armpy_numba_acc.llvm.pointers import (
    call_address,
    call_kernel,
    load_i64,
    store_i64,
)
from armpy_numba_acc.machine.call_layout import (
    ARRAY_TYPE,
    EXECUTOR,
    FINISHED,
    LET_OTHERS,
    NOT_RUN,
    NUM_COMMANDS,
    NUM_SLOTS,
    NUM_TENSORS,
    NUM_THREADS,
    SLOTS,
    TAKE_BACK,
    TO_PYTHON,
)
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, header_bytes: int) -> Returning:
    """Make a function that CPython can call (``METH_FASTCALL``).

    Parameters
    ----------
    isa : Isa
    header_bytes : int
        Of every Python object. Its last word is the object's type. Behind it, arrays have the
        address of their elements first of all (`PyArrayObject_fields`).

    Notes
    -----
    Its owner is the array that holds what `armpy_numba_acc.machine.call_layout` says. It gives a
    Python integer: how many commands it has not run, or `NOT_RUN`.
    """

    def python_call(owner, arrays, num_arrays):
        call = load_i64(owner + header_bytes, 0)
        left, number = NOT_RUN, 0
        if num_arrays == load_i64(call, NUM_TENSORS):
            kind = load_i64(call, ARRAY_TYPE)
            while number < num_arrays:
                if load_i64(load_i64(arrays, number) + header_bytes, -1) != kind:
                    break
                number += 1
        if number == load_i64(call, NUM_TENSORS):
            slot = load_i64(call, SLOTS)
            for _ in range(load_i64(call, NUM_SLOTS)):
                array = load_i64(arrays, load_i64(slot, 0))
                elements = load_i64(array + header_bytes, 0)
                store_i64(load_i64(slot, 1), 0, elements + load_i64(slot, 2))
                slot += 24
            let_others, state = load_i64(call, LET_OTHERS), 0
            if let_others != 0:
                state = call_address(let_others, 0)
            call_kernel(load_i64(call, EXECUTOR), call, 0, load_i64(call, NUM_THREADS))
            if let_others != 0:
                call_address(load_i64(call, TAKE_BACK), state)
            left = load_i64(call, NUM_COMMANDS) - load_i64(call, FINISHED)
        return call_address(load_i64(call, TO_PYTHON), left)

    return Returning(python_call)
