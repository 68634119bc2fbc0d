"""Values that sessions take and give: tensors above all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy_compat.onnxruntime.devices import OrtDevice, check_is_cpu
from armpy_compat.onnxruntime.element_types import (
    STRING,
    as_bytes,
    element_type_of,
    given_type,
    numpy_type,
    tensor_word,
)
from armpy_compat.onnxruntime.sparse_tensor import SparseTensor
from armpy_compat.signatures import checked

_Array: TypeAlias = "npt.NDArray[Any]"  # Any: elements of every type


class OrtValue:
    """A tensor in the memory of the host, a sparse tensor, a sequence, or nothing.

    Parameters
    ----------
    value : ndarray, SparseTensor, list, None or OrtValue
        An array is not copied.
    numpy_obj : object
        Kept as long as this.
    element_type : int, optional
        ONNX's number for the elements, where it does not follow from the array's type.
    """

    __slots__ = ("_element_type", "_kept", "_value")

    def __init__(
        self, value: object, numpy_obj: object = None, *, element_type: int | None = None
    ) -> None:
        self._kept = numpy_obj
        self._value: object = value
        self._element_type: int | None = element_type
        if isinstance(value, OrtValue):
            self._value, self._element_type = value._value, value._element_type
        elif element_type is None and isinstance(value, np.ndarray):
            self._element_type = element_type_of(value.dtype)

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    @classmethod
    @checked
    def ortvalue_from_numpy(
        cls,
        numpy_obj: object,
        /,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Make a value that shares an array's memory.

        Raises
        ------
        RuntimeError
            If it is not an array of numbers, or the device is not the processor.
        """
        _check_device(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or element_type_of(numpy_obj.dtype) == STRING:
            raise RuntimeError(
                "Creation of OrtValues is currently only supported from non-string numpy arrays"
            )
        return cls(np.ascontiguousarray(numpy_obj).reshape(numpy_obj.shape))

    @classmethod
    @checked
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: _Array, /, onnx_element_type: int
    ) -> OrtValue:
        """Make a value whose elements are an array's bytes.

        Raises
        ------
        RuntimeError
            If the sizes of the elements differ.
        """
        if given_type(onnx_element_type).itemsize != data.itemsize:
            raise RuntimeError(
                f"elements of {data.itemsize} bytes cannot be {tensor_word(onnx_element_type)}"
            )
        return cls(np.ascontiguousarray(data), element_type=onnx_element_type)

    @classmethod
    @checked
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: object,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: object = None,
    ) -> OrtValue:
        """Make a tensor of zeros.

        Parameters
        ----------
        element_type : int or dtype_like
            ONNX's number or NumPy's type.

        Raises
        ------
        RuntimeError
            If the device is not the processor, the type is none of tensors, or memory is short.
        """
        _check_device(device_type, device_id, vendor_id)
        zeros = np.zeros(tuple(shape), given_type(element_type))
        return cls(zeros, element_type=element_type if isinstance(element_type, int) else None)

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    @checked
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """Make a value of a sparse tensor."""
        return cls(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """Return the sparse tensor.

        Raises
        ------
        RuntimeError
            If it is something else.
        """
        if not isinstance(self._value, SparseTensor):
            raise RuntimeError("the value is not a sparse tensor")  # noqa: TRY004 - its kind there
        return self._value

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self.numpy().ctypes.data)

    def device_name(self) -> str:
        """Return ``cpu``."""
        return "cpu"

    def shape(self) -> list[int]:
        """Return the dimensions."""
        value = self._value
        return value.dense_shape() if isinstance(value, SparseTensor) else [*self.numpy().shape]

    def data_type(self) -> str:
        """Return the type, such as ``tensor(float)``."""
        value = self._value
        if isinstance(value, SparseTensor):
            return value.data_type()
        if isinstance(value, list):
            return f"seq({OrtValue(value[0]).data_type()})" if value else "seq(tensor(float))"
        return tensor_word(self.element_type())

    def element_type(self) -> int:
        """Return ONNX's number for the elements.

        Raises
        ------
        RuntimeError
            If it is not a tensor.
        """
        if self._element_type is None:
            raise RuntimeError("Only OrtValues that are Tensors have an element type")
        return self._element_type

    def tensor_size_in_bytes(self) -> int:
        """Return the size of the elements."""
        return self.numpy().nbytes

    def has_value(self) -> bool:
        """Return whether there is something in it."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Return whether it is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Return whether it is a sparse tensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Return whether it is a sequence of tensors."""
        return isinstance(self._value, list)

    def numpy(self) -> _Array:
        """Return the tensor, or the bytes of floats of 8 bits, which share this value's memory.

        Raises
        ------
        RuntimeError
            If it is not a tensor.
        """
        if not isinstance(self._value, np.ndarray):
            text = "Only OrtValues that are Tensors/SparseTensors are currently supported"
            raise RuntimeError(text)  # noqa: TRY004 - its kind there
        array: _Array = as_bytes(self._value)
        return array

    def content(self) -> object:
        """Return an array of the type that models take, a list or another value."""
        value = self._value
        if isinstance(value, np.ndarray) and self._element_type is not None:
            wanted = numpy_type(self._element_type)
            return value if wanted.kind == "O" or wanted == value.dtype else value.view(wanted)
        return value

    def update_inplace(self, data: _Array | OrtValue) -> None:
        """Write elements over those of this value.

        Raises
        ------
        TypeError
            If it is neither an array nor a value.
        RuntimeError
            If it has another size or holds strings.
        """
        source = data.numpy() if isinstance(data, OrtValue) else as_bytes(data)
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        if element_type_of(source.dtype) == STRING:
            raise RuntimeError(
                "Inplace update of OrtValues is currently only supported from non-string numpy"
                " arrays"
            )
        target = self.numpy()
        if source.size != target.size:
            raise RuntimeError(
                "The input size of numpy arrays does not match the size of the OrtValue."
            )
        np.copyto(target, source.reshape(target.shape), casting="unsafe")

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> _Array:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:  # Any: NumPy's arguments, and a capsule
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def to_dlpack(self) -> object:
        """Return a DLPack capsule of the tensor."""
        return self.__dlpack__()

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool = False) -> OrtValue:  # Any: a tensor
        """Make a value that shares the memory of a tensor with ``__dlpack__``, or of a capsule.

        Raises
        ------
        TypeError
            If it is neither.
        """
        if not hasattr(data, "__dlpack__") and type(data).__name__ != "PyCapsule":
            raise TypeError(f"from_dlpack: expected a tensor or a DLPack capsule; got {data!r}")
        owner: Any = data if hasattr(data, "__dlpack__") else _Capsule(data)  # Any: for NumPy
        array = np.from_dlpack(owner)
        return cls(array.view(np.bool_) if is_bool_tensor else array, data)


class _Capsule:
    """A DLPack capsule as NumPy takes it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class OrtValueVector(list[OrtValue]):
    """Values in order."""

    @checked
    def push_back(self, value: OrtValue) -> None:
        """Add a value."""
        self.append(OrtValue(value))

    def reserve(self, count: int) -> None:
        """Accept the number of values to come."""

    def shrink_to_fit(self) -> None:
        """Accept that no more values come."""

    def element_type_at(self, index: SupportsIndex) -> int:
        """Return ONNX's number for the elements of a value."""
        return self[index].element_type()

    def dlpack_at(self, index: SupportsIndex) -> object:
        """Return a DLPack capsule of a value."""
        return self[index].to_dlpack()


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Copy the elements of tensors to others.

    Raises
    ------
    RuntimeError
        If the numbers of tensors, or their sizes, differ.
    """
    if len(src) != len(dst):
        raise RuntimeError("the numbers of tensors differ")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)


def _check_device(device: str | OrtDevice, device_id: int, vendor_id: int) -> None:
    """Check that a device, or one of this name, is the processor."""
    check_is_cpu(
        OrtDevice.make(device, device_id, vendor_id) if isinstance(device, str) else device
    )
