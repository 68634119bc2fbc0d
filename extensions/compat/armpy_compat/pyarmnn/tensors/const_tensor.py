"""PyArmNN's ConstTensor: inputs of calls and constants of networks."""

from __future__ import annotations

import numpy as np

from armpy_compat.pyarmnn.tensors.tensor import Tensor
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo
from armpy_compat.pyarmnn.tensors.tensor_memory import (
    NUMPY_TYPES,
    MemoryArea,
    TensorMemory,
)


class ConstTensor(TensorMemory):
    """Elements that are read, never written.

    Takes a TensorInfo and an array, which is kept and made read-only; another ConstTensor, or a
    Tensor, whose array it shares; or nothing. The info has to be constant. The array may have
    another shape than the info, as long as the number of elements is the same.

    Raises
    ------
    TypeError
        If the elements are not an array, or of another type.
    ValueError
        For other arguments; if the info is not constant, or the size differs.
    """

    def __init__(self, *args: object) -> None:
        if not args:
            super().__init__(None, None)
        elif len(args) > 1 and isinstance(args[0], TensorInfo):
            super().__init__(args[0], _checked(args[0], args[1]))
        elif isinstance(args[0], ConstTensor | Tensor):
            if not args[0].GetInfo().IsConstant():
                raise ValueError(
                    "TensorInfo of Tensor when initializing ConstTensor must be set to constant."
                )
            super().__init__(args[0].GetInfo(), args[0].get_memory_area())
        else:
            raise ValueError(
                "Incorrect number of arguments or type of arguments provided to create Const"
                " Tensor."
            )

    def __copy__(self) -> ConstTensor:
        return ConstTensor(self)


def _checked(info: TensorInfo, data: object) -> MemoryArea:
    """The array, read-only from now on; errors as of `ConstTensor`."""
    if not isinstance(data, np.ndarray):
        raise TypeError("Data must be provided as a numpy array.")
    if not info.IsConstant():
        raise ValueError("TensorInfo when initializing ConstTensor must be set to constant.")
    data_type = info.GetDataType()
    kind = NUMPY_TYPES.get(data_type)
    if kind is None:
        raise ValueError(f"The data type provided for this Tensor is not supported: {data_type}")
    if data.dtype != kind:
        raise TypeError(
            f"Expected data to have type {kind} for type {data_type} but instead got"
            f" numpy.{data.dtype}"
        )
    if data.nbytes != info.GetNumBytes():
        raise ValueError(
            f"ConstTensor requires {info.GetNumBytes()} bytes, {data.nbytes} provided."
            f" Is your input array data type ({data.dtype}) aligned with TensorInfo?"
        )
    data.flags.writeable = False
    return data
