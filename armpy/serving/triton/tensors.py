"""Tensors of Triton's Python backend as arrays, and arrays as tensors, without copies.

Notes
-----
NumPy has no bfloat16: armpy's arrays have its bits. The server hands such tensors over by DLPack
alone, whose capsules say ``bfloat`` where NumPy takes ``uint``: one byte, which is changed. What is
put into a tensor is copied once, by the server's own code, when it puts an answer into the
memory that it shares with its instances; it has no way to write there directly.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils

from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.types import DataType

Array = npt.NDArray[np.generic]

_CODE_OFFSET = 20
"""Of DLPack's type code: behind a pointer, a device of two int32 and the number of dimensions."""

_UINT, _BFLOAT = 1, 4
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class DlpackView:
    """Memory of somebody else's, with another type code.

    Parameters
    ----------
    source : object
        With ``__dlpack__``.
    code : int
        Of DLPack.
    """

    def __init__(self, source: Any, code: int) -> None:  # Any: NumPy's arrays, the server's tensors
        self._source = source
        self._code = code

    def __dlpack__(self, stream: object = None, **_: object) -> object:
        capsule = self._source.__dlpack__()
        address = _pointer_of(capsule, b"dltensor")
        ctypes.c_uint8.from_address(address + _CODE_OFFSET).value = self._code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def array_of(tensor: Any, spec: TensorSpec, row_rank: int | None) -> Array:  # Any: the server's
    """An input as the model takes it, over the memory that the server shares.

    Parameters
    ----------
    tensor : pb_utils.Tensor
    spec : TensorSpec
    row_rank : int, optional
        How many dimensions the model's input has, if the server has one more.

    Raises
    ------
    InvalidArgumentError
        If a byte of a BOOL is neither 0 nor 1.
    """
    array: Array
    if spec.data_type is DataType.BFLOAT16:
        array = np.from_dlpack(DlpackView(tensor, _UINT))  # type: ignore[arg-type]  # no such type in 3.11
    else:
        array = tensor.as_numpy()
        if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise InvalidArgumentError(
                "a byte is no BOOL", where=f"input '{spec.name}'", expected="0 or 1"
            )
    return array if row_rank is None else array.reshape(array.shape[:row_rank])


def tensor_of(name: str, array: Array, spec: TensorSpec, is_scalar: bool) -> Any:  # Any: as there
    """An output as the server takes it; with one dimension more if it has none of its own."""
    if is_scalar:
        array = array.reshape((*array.shape, 1))
    if spec.data_type is DataType.BFLOAT16:
        # NumPy shares memory that can be written to.
        bits = array if array.flags.writeable else array.copy()
        return pb_utils.Tensor.from_dlpack(name, DlpackView(bits, _BFLOAT))
    return pb_utils.Tensor(name, array)
