"""Sparse tensors of ONNX as arrays of all their elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx

from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy.types import DataType

ReadTensor: TypeAlias = Callable[[onnx.TensorProto, str], tuple[Array, DataType]]

MOST_DENSE_BYTES = 1 << 28
"""Maximum size of all elements of a sparse tensor: a few bytes of a file must not become gigabytes.
"""


def dense_elements(
    sparse: onnx.SparseTensorProto, read: ReadTensor, where: str
) -> tuple[Array, DataType]:
    """Stored elements of a sparse tensor with zeros, and their data type.

    Parameters
    ----------
    read : callable
        Reads the dense tensors of values and indices.
    where : str
        Name of the place, for messages.

    Raises
    ------
    ParserError
        If values and indices do not fit the shape, or the dense tensor is too large.

    References
    ----------
    ONNX, ``SparseTensorProto``: indices of shape (NNZ) count elements, those of shape (NNZ, rank)
    name each axis.
    """
    values, data_type = read(sparse.values, where)
    shape = tuple(sparse.dims)
    values = values.reshape(-1)
    if any(dim < 0 for dim in shape):
        raise ParserError("a dimension is negative", where=where, actual=str(list(shape)))
    if math.prod(shape) * data_type.size_bytes > MOST_DENSE_BYTES:
        raise ParserError(
            "the sparse tensor is too large to be written out",
            where=where,
            expected=f"at most {MOST_DENSE_BYTES} bytes",
            actual=f"{data_type.size_bytes} bytes times {list(shape)}",
        )
    places = _places(sparse.indices, shape, values.size, read, where)
    dense = data_type.zeros((math.prod(shape),))
    dense[places] = values
    return dense.reshape(shape), data_type


def _places(
    indices: onnx.TensorProto, shape: tuple[int, ...], count: int, read: ReadTensor, where: str
) -> Array:
    """Flat places of a sparse tensor's values."""
    if not count:
        return np.zeros(0, np.int64)
    numbers, index_type = read(indices, f"{where}, indices")
    by_axis = numbers.shape == (count, len(shape))
    if numbers.dtype.kind not in "iu" or not (by_axis or numbers.shape == (count,)):
        raise ParserError(
            "the indices have the wrong type or shape",
            where=where,
            expected=f"integers of shape ({count},) or ({count}, {len(shape)})",
            actual=f"{index_type} of shape {numbers.shape}",
        )
    limits = np.array(shape if by_axis else math.prod(shape))
    if (numbers < 0).any() or (numbers >= limits).any():
        raise ParserError(
            "an index is outside of the sparse tensor",
            where=where,
            expected=f"0 or more, below {limits.tolist()}",
            actual=f"{numbers.min()} to {numbers.max()}",
        )
    if by_axis:
        numbers = np.ravel_multi_index(tuple(numbers.T.astype(np.int64)), shape)
    return np.asarray(numbers, np.int64)
