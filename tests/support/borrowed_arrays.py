"""Arrays that C code makes of an address alone: they have no base, and do not own their memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from armpy.ops.operation import Array

_NEW = 93  # PyArray_New's number in NumPy's table of functions
_WRITABLE_CARRAY = 0x0501


def borrowed(owner: Array, start: int, stop: int) -> Array:
    """Some elements of a vector, as an array that does not say whose they are."""
    core: Any = np._core if hasattr(np, "_core") else np.core  # Any: not typed
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions = pointer_of(core._multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(functions, ctypes.POINTER(ctypes.c_void_p))[_NEW]
    number, pointer = ctypes.c_int, ctypes.c_void_p
    sizes = ctypes.POINTER(ctypes.c_ssize_t)
    kind = ctypes.py_object
    signature = (kind, number, sizes, number, pointer, pointer, number, number, pointer)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(address or 0)
    shape = (ctypes.c_ssize_t * 1)(stop - start)
    data = owner.ctypes.data + start * owner.itemsize
    last = owner.itemsize, _WRITABLE_CARRAY, None
    array: Array = new(np.ndarray, 1, shape, owner.dtype.num, None, data, *last)
    return array
