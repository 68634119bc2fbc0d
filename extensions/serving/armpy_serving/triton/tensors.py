"""Tensors of Triton's Python backend as arrays, and arrays as tensors, without copies.

Notes
-----
An array that is put into a tensor is copied once, by the server's own code, when it puts an answer
into the memory that it shares with its instances; it has no way to write there directly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.types import DataType
from armpy_serving.contents import Array, encoded_strings
from armpy_serving.triton.bfloat import bfloat_capsule, bits_of


def array_of(tensor: Any, spec: TensorSpec, row_rank: int | None) -> Array:  # Any: the server's
    """An input as the model takes it, over the memory that the server shares.

    Parameters
    ----------
    row_rank : int, optional
        Number of dimensions of the model's input, if the server has one more.

    Raises
    ------
    InvalidArgumentError
        If a byte of a BOOL is neither 0 nor 1.
    """
    array: Array
    if spec.data_type is DataType.BFLOAT16:
        array = bits_of(tensor)
    else:
        array = tensor.as_numpy()
        if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise InvalidArgumentError(
                "a byte is not a BOOL", where=f"input '{spec.name}'", expected="0 or 1"
            )
    return array if row_rank is None else array.reshape(array.shape[:row_rank])


def tensor_of(
    name: str, array: Array, spec: TensorSpec, is_scalar: bool, limit_bytes: int
) -> Any:  # Any: as there
    """An output as the server takes it; with one dimension more if it has none of its own.

    Raises MemoryQuotaError if strings take more than the limit.
    """
    if is_scalar:
        array = array.reshape((*array.shape, 1))
    if spec.data_type is DataType.BFLOAT16:
        return pb_utils.Tensor.from_dlpack(name, bfloat_capsule(array.view(np.uint16)))
    if spec.data_type.is_string:
        elements = np.empty(array.size, object)
        elements[:] = [*encoded_strings(array, limit_bytes)]
        array = elements.reshape(array.shape)
    return pb_utils.Tensor(name, array)
