"""ONNX's element types as data types, and its tensors as arrays of stored elements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from armpy.core.strings import as_strings
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy.types import DataType

DATA_TYPES: Mapping[int, DataType] = MappingProxyType(
    {
        TensorProto.FLOAT: DataType.FLOAT32,
        TensorProto.FLOAT16: DataType.FLOAT16,
        TensorProto.BFLOAT16: DataType.BFLOAT16,
        TensorProto.DOUBLE: DataType.FLOAT64,
        TensorProto.BOOL: DataType.BOOLEAN,
        TensorProto.INT8: DataType.SIGNED8,
        TensorProto.INT16: DataType.SIGNED16,
        TensorProto.INT32: DataType.SIGNED32,
        TensorProto.INT64: DataType.SIGNED64,
        TensorProto.UINT8: DataType.UNSIGNED8,
        TensorProto.UINT16: DataType.UNSIGNED16,
        TensorProto.UINT32: DataType.UNSIGNED32,
        TensorProto.UINT64: DataType.UNSIGNED64,
        TensorProto.INT4: DataType.SIGNED4,
        TensorProto.UINT4: DataType.UNSIGNED4,
        TensorProto.FLOAT8E4M3FN: DataType.FLOAT8_E4M3FN,
        TensorProto.FLOAT8E4M3FNUZ: DataType.FLOAT8_E4M3FNUZ,
        TensorProto.FLOAT8E5M2: DataType.FLOAT8_E5M2,
        TensorProto.FLOAT8E5M2FNUZ: DataType.FLOAT8_E5M2FNUZ,
        TensorProto.FLOAT8E8M0: DataType.FLOAT8_E8M0,
        TensorProto.FLOAT4E2M1: DataType.FLOAT4_E2M1,
        TensorProto.INT2: DataType.SIGNED2,
        TensorProto.UINT2: DataType.UNSIGNED2,
        TensorProto.STRING: DataType.STRING,
    }
)
"""Data types by the numbers of ``TensorProto.DataType``."""


def data_type_of(element_type: int, where: str) -> DataType:
    """The data type of a number of ``TensorProto.DataType``.

    Raises
    ------
    ParserError
        If armpy has none for it.
    """
    data_type = DATA_TYPES.get(element_type)
    if data_type is None:
        raise ParserError(
            "the element type is not supported",
            where=where,
            expected=", ".join(map(type_name, DATA_TYPES)),
            actual=type_name(element_type),
        )
    return data_type


def type_name(element_type: int) -> str:
    """ONNX's name of an element type."""
    try:
        return str(TensorProto.DataType.Name(element_type))
    except ValueError:
        return str(element_type)


def read_tensor(tensor: onnx.TensorProto, where: str) -> tuple[Array, DataType]:
    """Stored elements of a tensor, and their data type.

    Raises
    ------
    ParserError
        If its type is not supported, its bytes do not fit its shape, or lie in another file: the
        package would look for that where the process works.
    """
    data_type = data_type_of(tensor.data_type, where)
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ParserError(
            "the tensor's elements are in another file",
            where=where,
            expected="elements in the tensor itself",
        )
    if any(dim < 0 for dim in tensor.dims):
        raise ParserError("a dimension is negative", where=where, actual=str(list(tensor.dims)))
    if tensor.HasField("segment"):  # of other tensors that no exporter writes; onnx refuses it
        whole = TensorProto()
        whole.CopyFrom(tensor)
        whole.ClearField("segment")
        tensor = whole
    try:
        if data_type.is_string:  # onnx decodes them, and fails at bytes that are not UTF-8
            array = np.array([*tensor.string_data], object).reshape(tuple(tensor.dims))
        else:
            array = numpy_helper.to_array(tensor)
    except Exception as error:  # whatever the library raises, the file is the cause
        raise ParserError(f"the tensor cannot be read: {error}", where=where) from error
    return stored(array, data_type), data_type


def stored(array: Array, data_type: DataType) -> Array:
    """An array as armpy stores its elements: small floats as their bits, one per byte."""
    if data_type.is_string:
        return as_strings(array)
    if array.dtype == data_type.dtype:
        return array
    if data_type.is_bit_pattern and array.dtype.itemsize == data_type.size_bytes:
        return array.view(data_type.dtype)
    return np.asarray(array).astype(data_type.dtype)


def numpy_type(element_type: int) -> np.dtype[np.generic]:
    """NumPy's type of an element type, from the ``ml_dtypes`` package where NumPy has none."""
    dtype: np.dtype[np.generic] = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    return dtype
