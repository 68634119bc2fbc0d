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
                "FLOAT16",
                "BFLOAT16",
                "BOOL",
                "STRING",
                "COMPLEX64",
                "COMPLEX128",
                "INT8",
                "INT16",
                "INT32",
                "INT64",
                "UINT8",
                "UINT16",
                "UINT32",
                "UINT64",
                "INT4",
                "UINT4",
                "INT2",
                "UINT2",
                "FLOAT4E2M1",
                "FLOAT8E8M0",
                "FLOAT8E4M3FN",
                "FLOAT8E4M3FNUZ",
                "FLOAT8E5M2",
                "FLOAT8E5M2FNUZ",
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
    if dtype.kind in "USO" or dtype.type is np.void:  # the types of `ml_dtypes` have kind V
        return STRING
    try:
        return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
    except (KeyError, ValueError) as error:
        raise RuntimeError(f"Numpy_type {dtype.num} can't be converted to MLDataType.") from error


def as_bytes(value: Any) -> Any:  # Any: arrays, and other values as they are
    """Floats of 8 bits as the bytes that ONNX Runtime gives programs, which NumPy has no type for.

    The bytes share the array's memory.
    """
    if isinstance(value, np.ndarray) and _is_float8(value.dtype):
        return value.view(np.uint8)
    return value


@cache
def _is_float8(dtype: np.dtype[Any]) -> bool:
    return dtype.name.startswith("float8_")


def given_type(element_type: object) -> np.dtype[Any]:
    """NumPy's type for elements that a program names by ONNX's number or by a type of NumPy's.

    Raises
    ------
    RuntimeError
        If there are no such tensors, or they hold strings.
    """
    if isinstance(element_type, int) and element_type not in WORDS:
        raise RuntimeError(f"tensor type {element_type} is not supported")
    try:
        dtype: np.dtype[Any] = (
            numpy_type(element_type) if isinstance(element_type, int) else np.dtype(element_type)  # type: ignore[call-overload]  # others are a TypeError
        )
    except (TypeError, ValueError) as error:
        text = f"Not a valid numpy type. Expected a dtype or a number of ONNX; got {element_type!r}"
        raise RuntimeError(text) from error
    if element_type is None or element_type_of(dtype) == STRING:
        raise RuntimeError("Only binding non-string Tensors is currently supported")
    return dtype


def tensor_word(element_type: int) -> str:
    """The text for tensors of an element type, such as ``tensor(float)``."""
    return f"tensor({WORDS.get(element_type, 'undefined')})"
