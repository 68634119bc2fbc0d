"""Base of Tensor and ConstTensor: an array and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.swig import SwigObject
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo, TensorShape

MemoryArea = npt.NDArray[Any]  # Any: the info has the type of the elements

NUMPY_TYPES: Mapping[int, type[np.generic]] = {
    constants.DataType_QAsymmU8: np.uint8,
    constants.DataType_QAsymmS8: np.int8,
    constants.DataType_QSymmS8: np.int8,
    constants.DataType_Float32: np.float32,
    constants.DataType_QSymmS16: np.int16,
    constants.DataType_Signed32: np.int32,
    constants.DataType_Float16: np.float16,
    # PyArmNN takes none of these.
    constants.DataType_Boolean: np.bool_,
    constants.DataType_Signed64: np.int64,
}
"""Type of an array's elements, by the ``DataType_`` constant."""


class TensorMemory(SwigObject):
    """An array and what it holds."""

    def __init__(
        self,
        info: TensorInfo | None,
        memory_area: MemoryArea | None,
        shaped: MemoryArea | None = None,
    ) -> None:
        self._info = TensorInfo() if info is None else TensorInfo(info)
        self._info.thisown = False
        self._memory_area = memory_area
        self.shaped = memory_area if shaped is None else shaped
        """The same memory as an array of the shape that calls probably need."""

    def get_memory_area(self) -> MemoryArea:
        """Return the array itself; None of a tensor without memory."""
        return self._memory_area  # type: ignore[return-value]  # programs do not ask empty ones

    def GetInfo(self) -> TensorInfo:
        """Return the description."""
        return self._info

    def GetShape(self) -> TensorShape:
        """Return the shape."""
        return self._info.GetShape()

    def GetDataType(self) -> int:
        """Return the data type, a ``DataType_`` constant."""
        return self._info.GetDataType()

    def GetNumDimensions(self) -> int:
        """Return the number of dimensions."""
        return self._info.GetNumDimensions()

    def GetNumElements(self) -> int:
        """Return the number of elements."""
        return self._info.GetNumElements()

    def GetNumBytes(self) -> int:
        """Return the bytes of the elements."""
        return self._info.GetNumBytes()

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}{{DataType: {self.GetDataType()},"
            f" NumBytes: {self.GetNumBytes()}, NumDimensions: {self.GetNumDimensions()},"
            f" NumElements: {self.GetNumElements()}}}"
        )
