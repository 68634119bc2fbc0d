"""Functions in native code that Python calls like its own.

Notes
-----
A call through `ctypes` converts every argument and takes longer than a small network.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from armpy.errors import BackendUnavailableError

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    import numpy.typing as npt

    from armpy.ops.operation import Array

HEADER_BYTES = object.__basicsize__
"""Of every object; its type is the last thing in there."""

_DEFINITION = "@8sPPiP"
"""A name, then CPython's ``PyMethodDef``: address of the name, of the function, flags, no text."""

DEFINITION_WORDS = struct.calcsize(_DEFINITION) // 8 + 1
"""Room for the above."""

_METH_FASTCALL = 0x80

_Word = ctypes.c_ssize_t
_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))


def python_function(address: int, owner: npt.NDArray[np.int64], at: int) -> Callable[..., int]:
    """A native function as one of Python's.

    Parameters
    ----------
    address
        Of a ``PyObject *(PyObject *owner, PyObject *const *arguments, Py_ssize_t number)``.
    owner : ndarray, int64
        Its first arguments.
    at
        Where in `owner` there are `DEFINITION_WORDS` words for the interpreter: they have to
        live as long as the function.
    """
    definition = owner.ctypes.data + 8 * at
    fields = (b"program", definition, address, _METH_FASTCALL, 0)
    struct.pack_into(_DEFINITION, owner.data, 8 * at, *fields)
    callable_made: Callable[..., int] = _new_function(definition + 8, owner, None)
    return callable_made


def address_of_interpreters(name: str) -> int:
    """Address of one of the interpreter's own functions."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


_allocate_lock = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
_acquire_lock = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(
    ("PyThread_acquire_lock", ctypes.pythonapi)
)

release_lock: Callable[[int], None] = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(
    ("PyThread_release_lock", ctypes.pythonapi)
)
"""Free a lock of `new_lock` for the next thread that takes it."""

free_lock: Callable[[int], None] = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(
    ("PyThread_free_lock", ctypes.pythonapi)
)
"""Free a lock of `new_lock`; it may not be used afterwards."""


def new_lock() -> int:
    """Address of a new lock of the interpreter's, which is taken.

    Raises
    ------
    MemoryError
        If there is no room for it.
    """
    lock = _allocate_lock()
    if not lock:
        raise MemoryError("the interpreter has no room for a lock")
    # It begins taken: a thread that waits for it sleeps until another one releases it.
    _acquire_lock(lock, 1)
    return int(lock)


def _word(thing: object, offset: int) -> int:
    """A word of an object, counted from the end of its header."""
    return _Word.from_address(id(thing) + HEADER_BYTES + offset).value


def check_layout() -> None:
    """Check that arrays are laid out as native code expects it.

    Raises
    ------
    BackendUnavailableError
        If not: this is not CPython, or an unknown NumPy.
    """
    # A slice: its data does not begin where the memory does, so that a wrong offset shows.
    example: Array = np.arange(6, dtype=np.int16)[2:]
    is_known = sys.implementation.name == "cpython" and (
        _word(example, -8) == id(np.ndarray) and _word(example, 0) == example.ctypes.data
    )
    if not is_known:
        raise BackendUnavailableError(
            "arrays are not laid out as native code expects it",
            where="NumbaAcc",
            expected="CPython's objects and NumPy's PyArrayObject_fields",
            actual=f"{sys.implementation.name}, NumPy {np.__version__}",
        )
