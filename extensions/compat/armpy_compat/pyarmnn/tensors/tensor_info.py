"""PyArmNN's TensorShape and TensorInfo."""

from __future__ import annotations

import math
from collections.abc import Iterator

from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.fields import as_bool, as_float32, as_signed, as_unsigned
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments
from armpy_compat.pyarmnn.tensors.permutation_vector import MAX_DIMENSIONS, checked_sizes

_SIZES_BYTES = {
    constants.DataType_Float16: 2,
    constants.DataType_Float32: 4,
    constants.DataType_QAsymmU8: 1,
    constants.DataType_Signed32: 4,
    constants.DataType_Boolean: 1,
    constants.DataType_QSymmS16: 2,
    constants.DataType_QSymmS8: 1,
    constants.DataType_QAsymmS8: 1,
    constants.DataType_BFloat16: 2,
    constants.DataType_Signed64: 8,
}

_QUANTIZED = frozenset(
    {
        constants.DataType_QAsymmU8,
        constants.DataType_QSymmS16,
        constants.DataType_QSymmS8,
        constants.DataType_QAsymmS8,
    }
)


class TensorShape(SwigObject):
    """Dimensions of a tensor; iterating gives them in order.

    Parameters
    ----------
    dimensions : tuple
        One to five numbers.

    Raises
    ------
    TypeError
        If it is not a tuple, or an element is not a number.
    RuntimeError
        If there are none or too many.
    """

    def __init__(self, dimensions: tuple[object, ...]) -> None:
        sizes = checked_sizes(dimensions)
        if not sizes:
            raise RuntimeError("Tensor numDimensions must be greater than 0")
        if len(sizes) > MAX_DIMENSIONS:
            raise RuntimeError(
                "Tensor numDimensions must be less than or equal to MaxNumOfTensorDimensions"
            )
        self._sizes = list(sizes)

    @classmethod
    def copy_of(cls, other: TensorShape | None) -> TensorShape:
        """A copy, or a shape without dimensions."""
        copy = cls.__new__(cls)
        copy._sizes = [] if other is None else [*other._sizes]
        return copy

    def GetNumDimensions(self) -> int:
        """Return the number of dimensions."""
        return len(self._sizes)

    def GetNumElements(self) -> int:
        """Return the number of elements of a tensor with this shape."""
        return math.prod(self._sizes) if self._sizes else 0

    def __getitem__(self, index: int) -> int:
        return self._sizes[self._checked(index, "TensorShape___getitem__")]

    def __setitem__(self, index: int, size: int) -> None:
        self._sizes[self._checked(index, "TensorShape___setitem__")] = as_unsigned(size)

    def _checked(self, index: int, method: str) -> int:
        try:
            place = as_unsigned(index)
        except (TypeError, OverflowError) as error:
            raise type(error)(f"in method '{method}', argument 2 of type 'unsigned int'") from error
        if place >= len(self._sizes):
            raise ValueError(
                f"Invalid dimension index: {place} (number of dimensions is {len(self._sizes)})"
            )
        return place

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._sizes))

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self._sizes))
        return (
            f"TensorShape{{Shape({sizes}), NumDimensions: {len(self._sizes)},"
            f" NumElements: {self.GetNumElements()}}}"
        )


class TensorInfo(SwigObject):
    """Shape, data type and quantisation of a tensor.

    Takes another TensorInfo; or a TensorShape, a data type, and optionally the scale, the offset
    and whether the tensor is constant; or nothing.

    Raises
    ------
    TypeError
        For other arguments.
    """

    def __init__(self, *args: object) -> None:
        self._scale: float | None = None
        self._offset, self._is_constant = 0, False
        self._data_type = constants.DataType_Float32
        if not args:
            self._shape = TensorShape.copy_of(None)
        elif len(args) == 1 and isinstance(args[0], TensorInfo):
            other = args[0]
            self._scale = other._scale
            self._offset, self._is_constant = other._offset, other._is_constant
            self._data_type = other._data_type
            self._shape = TensorShape.copy_of(other._shape)
        elif 2 <= len(args) <= 5 and isinstance(args[0], TensorShape):
            self._shape = TensorShape.copy_of(args[0])
            settings = [*args[1:], *(0.0, 0, False)[len(args) - 2 :]]
            try:
                self._data_type = as_signed(settings[0])
                self._scale = as_float32(settings[1])
                self._offset = as_signed(settings[2])
                self._is_constant = as_bool(settings[3])
            except (TypeError, OverflowError) as error:
                raise wrong_arguments("new_TensorInfo") from error
        else:
            raise wrong_arguments("new_TensorInfo")

    def GetShape(self) -> TensorShape:
        """Return the shape itself: changing its elements changes this object."""
        return self._shape

    def SetShape(self, shape: TensorShape) -> None:
        """Take another shape."""
        if not isinstance(shape, TensorShape):
            raise _wrong("SetShape", "armnn::TensorShape const &")
        self._shape = TensorShape.copy_of(shape)

    def GetNumDimensions(self) -> int:
        """Return the number of dimensions."""
        return self._shape.GetNumDimensions()

    def GetNumElements(self) -> int:
        """Return the number of elements."""
        return self._shape.GetNumElements()

    def GetNumBytes(self) -> int:
        """Return the bytes of the elements; 0 for an unknown data type."""
        return _SIZES_BYTES.get(self._data_type, 0) * self.GetNumElements()

    def GetDataType(self) -> int:
        """Return the data type, a ``DataType_`` constant."""
        return self._data_type

    def SetDataType(self, data_type: int) -> None:
        """Take another data type."""
        try:
            self._data_type = as_signed(data_type)
        except (TypeError, OverflowError) as error:
            raise _wrong("SetDataType", "armnn::DataType") from error

    def GetQuantizationScale(self) -> float:
        """Return the scale; 1.0 where none was set."""
        return 1.0 if self._scale is None else self._scale

    def SetQuantizationScale(self, scale: float) -> None:
        """Take another scale, rounded to float32."""
        try:
            self._scale = as_float32(scale)
        except (TypeError, OverflowError) as error:
            raise _wrong("SetQuantizationScale", "float") from error

    def GetQuantizationOffset(self) -> int:
        """Return the zero point."""
        return self._offset

    def SetQuantizationOffset(self, offset: int) -> None:
        """Take another zero point."""
        try:
            self._offset = as_signed(offset)
        except (TypeError, OverflowError) as error:
            raise _wrong("SetQuantizationOffset", "int32_t") from error

    def IsQuantized(self) -> bool:
        """Return whether the data type is quantised."""
        return self._data_type in _QUANTIZED

    def IsConstant(self) -> bool:
        """Return whether the tensor is constant, as a `ConstTensor` has to be."""
        return self._is_constant

    def SetConstant(self, IsConstant: bool = True) -> None:
        """Set whether the tensor is constant."""
        self._is_constant = bool(IsConstant)

    def IsTypeSpaceMatch(self, other: TensorInfo) -> bool:
        """Return whether data types agree and, if quantised, scales and offsets."""
        if self._data_type != other._data_type:
            return False
        return not self.IsQuantized() or (
            self.GetQuantizationScale() == other.GetQuantizationScale()
            and self._offset == other._offset
        )

    def __str__(self) -> str:
        return (
            f"TensorInfo{{DataType: {self._data_type}, IsQuantized: {self.IsQuantized():d},"
            f" QuantizationScale: {self.GetQuantizationScale():.6f},"
            f" QuantizationOffset: {self._offset}, IsConstant: {self._is_constant:d},"
            f" NumDimensions: {self.GetNumDimensions()}, NumElements: {self.GetNumElements()}}}"
        )


def _wrong(method: str, c_type: str) -> TypeError:
    return TypeError(f"in method 'TensorInfo_{method}', argument 2 of type '{c_type}'")
