"""Element types of tensors: ONNX's numbers, ONNX Runtime's words and NumPy's types."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

WORDS = MappingProxyType(
    {
        TensorProto.FLOAT: "float",
        TensorProto.DOUBLE: "double",
        **{
            getattr(TensorProto, name): name.lower()
            for name in (
                *("FLOAT16", "BFLOAT16", "BOOL", "STRING", "COMPLEX64", "COMPLEX128"),
                *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
                *("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1", "FLOAT8E8M0"),
                *("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
            )
            if hasattr(TensorProto, name)  # newer versions of the package know more
        },
    }
)
"""The word for each element type in ``tensor(float)``."""

STRING: int = TensorProto.STRING


@cache
def numpy_type(element_type: int) -> np.dtype[Any]:
    """NumPy's type for elements; one of `ml_dtypes` where NumPy has none, `object` for strings."""
    if element_type == STRING:
        return np.dtype(object)
    dtype: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    return dtype


@cache
def element_type_of(dtype: np.dtype[Any]) -> int:
    """ONNX's number for a type of NumPy's.

    Raises
    ------
    RuntimeError
        If ONNX has no such type.
    """
    if dtype.kind in "USOV":
        return STRING
    try:
        return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
    except (KeyError, ValueError) as error:
        raise RuntimeError(f"Numpy_type {dtype.num} can't be converted to MLDataType.") from error


def tensor_word(element_type: int) -> str:
    """The text for tensors of an element type, such as ``tensor(float)``."""
    return f"tensor({WORDS.get(element_type, 'undefined')})"
