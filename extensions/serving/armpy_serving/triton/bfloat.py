"""Tensors of bfloat16 between armpy's arrays of their bits and Triton, by DLPack.

Notes
-----
NumPy has no bfloat16, and the server hands such tensors over by DLPack alone. Capsules of the
server's say ``bfloat`` where NumPy takes ``uint``: one byte, which is changed. Those that go to the
server are made here: it renames what it has used otherwise than NumPy's own can bear, which ends
the process.

References
----------
DLPack, ``dlpack.h``: DLManagedTensor.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

_UINT, _BFLOAT = 1, 4
_NAME = b"dltensor"
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ManagedTensor(ctypes.Structure):
    """DLPack's ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype = ctypes.py_object
_capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_lent: dict[int, tuple[object, ...]] = {}
"""Memory that the server reads, by its address, until the server releases it."""


@_Deleter
def _give_back(address: int) -> None:
    """Release the memory that the server has read."""
    _lent.pop(address, None)


class DlpackBits:
    """A tensor of bfloat16 of the server's, as NumPy can read it: by its bits."""

    def __init__(self, tensor: Any) -> None:  # Any: of the server's module
        self._tensor = tensor

    def __dlpack__(self, **_: object) -> object:
        capsule = self._tensor.__dlpack__()
        ManagedTensor.from_address(_pointer_of(capsule, _NAME)).code = _UINT
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def bits_of(tensor: Any) -> Array:  # Any: of the server's module
    """The bits of a tensor, as an array over its memory."""
    array: Array = np.from_dlpack(DlpackBits(tensor))  # type: ignore[arg-type]  # no type in 3.11
    return array


def bfloat_capsule(bits: Array) -> object:
    """A capsule of bfloat16 over an array of bits, which is kept until it has been read."""
    bits = np.ascontiguousarray(bits)
    shape = (ctypes.c_int64 * max(bits.ndim, 1))(*bits.shape)
    managed = ManagedTensor(
        bits.ctypes.data, 1, 0, bits.ndim, _BFLOAT, 16, 1, shape, None, 0, None, _give_back
    )
    address = ctypes.addressof(managed)
    _lent[address] = (managed, shape, bits)
    return _capsule_of(address, _NAME, None)
