"""TensorBuffer: memory of an input or output of a compiled model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops.operation import Array

_NAMES = frozenset(
    {
        "float32",
        "float16",
        "int32",
        "int8",
        "uint8",
        "bool",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
    }
)
"""Element types that LiteRT's buffers have; others are used with buffers of the same type."""


class TensorBuffer:
    """Memory that a compiled model reads or writes.

    Parameters
    ----------
    array : ndarray
        Used in place.
    """

    def __init__(self, array: Array) -> None:
        self._array: Array | None = array

    @classmethod
    def create_from_host_memory(cls, data_array: Array) -> TensorBuffer:
        """Make a buffer of an array's own memory.

        Raises
        ------
        ValueError
            If it is not a C-contiguous array of an element type that buffers have.
        """
        array, _ = cls._normalize_numpy_array(data_array, zero_copy=True)
        return cls(array.reshape(-1))

    @classmethod
    def _normalize_dtype(cls, dtype: Any) -> tuple[str, np.dtype[Any]]:  # Any: as NumPy takes it
        """Name and dtype of an element type."""
        try:
            known = np.dtype(dtype)
        except TypeError as error:
            raise ValueError(f"Unsupported dtype: {dtype}") from error
        if known.name not in _NAMES:
            raise ValueError(f"Unsupported dtype: {dtype}")
        return known.name, known

    @classmethod
    def _normalize_numpy_array(cls, data_array: Any, *, zero_copy: bool) -> tuple[Array, str]:
        """A contiguous array and the name of its element type."""  # Any: it is checked
        if not isinstance(data_array, np.ndarray):
            # LiteRT's programs look for a ValueError.
            raise ValueError("data_array must be a NumPy array")  # noqa: TRY004
        name, _ = cls._normalize_dtype(data_array.dtype)
        if zero_copy and not data_array.flags.c_contiguous:
            raise ValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        return np.ascontiguousarray(data_array) if not zero_copy else data_array, name

    def write(self, data_array: Array) -> None:
        """Copy an array's bytes to the beginning of the buffer.

        Raises
        ------
        ValueError
            If it is not an array, or buffers have no such element type.
        RuntimeError
            If it is larger than the buffer, or the buffer is destroyed.
        """
        target = self._bytes("WriteTensorBuffer")
        if not (isinstance(data_array, np.ndarray) and data_array.dtype == self.capsule.dtype):
            data_array, _ = self._normalize_numpy_array(data_array, zero_copy=False)
        source = np.ascontiguousarray(data_array).reshape(-1).view(np.uint8)
        if source.size > target.size:
            raise RuntimeError("WriteTensorBuffer: source buffer is larger than the tensor buffer")
        target[: source.size] = source

    def read(self, num_elements: int, output_dtype: Any) -> Array:  # Any: as NumPy takes it
        """Copy elements from the beginning of the buffer, as a type.

        Raises
        ------
        ValueError
            If buffers have no such element type.
        RuntimeError
            If the buffer is smaller, or destroyed.
        """
        source = self._bytes("ReadTensorToBuffer")
        dtype = self.capsule.dtype
        if output_dtype != dtype:
            _, dtype = self._normalize_dtype(output_dtype)
        size = num_elements * dtype.itemsize
        if size > source.size:
            raise RuntimeError(
                "ReadTensorToBuffer: destination buffer is larger than the tensor buffer"
            )
        elements: Array = source[:size].copy().view(dtype)
        return elements

    def get_tensor_details(self) -> dict[str, Any]:  # Any: a text and a list
        """Element type and shape.

        Raises
        ------
        RuntimeError
            If the buffer is destroyed.
        """
        if self._array is None:
            raise RuntimeError("GetTensorDetails: invalid capsule")
        return {"dtype": self._array.dtype.name, "shape": [*self._array.shape]}

    def destroy(self) -> None:
        """Give the memory back; the buffer cannot be used any more."""
        self._array = None

    @property
    def capsule(self) -> Array:
        """The buffer's array, in the place of LiteRT's handle.

        Raises
        ------
        ValueError
            If the buffer is destroyed.
        """
        if self._array is None:
            raise ValueError("TensorBuffer has been destroyed")
        return self._array

    def _bytes(self, function: str) -> npt.NDArray[np.uint8]:
        """The memory, for a function of LiteRT's that errors name."""
        if self._array is None:
            raise RuntimeError(f"{function}: invalid capsule")
        return self._array.reshape(-1).view(np.uint8)
