"""Tensors of other libraries and buffers, as arrays over the same memory."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy import backend
from armpy.errors import InvalidArgumentError
from armpy.tensor import TensorInfo, format_shape

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.ops.operation import Array

_HOST_DEVICES = {1: "CPU", 3: "CUDA host", 11: "ROCm host", 13: "CUDA managed"}
"""DLPack's kinds of device whose memory the processor sees."""


def as_view(
    info: TensorInfo,  # what the bytes stand for, where these do not say it themselves
    given: object,  # not an array
) -> Array | None:
    """An array over the memory of another library's tensor, or of a buffer.

    Raises InvalidArgumentError if its memory cannot be an array: of another device, of a type that
    NumPy has not; if bytes are not as many as the tensor's.

    The array is read-only if the memory is; None if the object has neither ``__dlpack__`` nor a
    buffer.

    Bytes without a type (``bytes``, ``bytearray``, ``mmap``, and memoryviews of format ``B`` with
    one dimension) are taken for the tensor's elements in native byte order. Everything else has the
    type and shape that it says.
    """
    if isinstance(given, backend.ExternalMemory):
        raise InvalidArgumentError(
            "memory is given in place of a tensor",
            actual=str(given.source),
            fix="Import it first: Model.import_inputs, Model.import_outputs",
        )
    # Of the class, where Python looks for such methods: a proxy object may answer to any name.
    if hasattr(type(given), "__dlpack__"):
        return _of_dlpack(info, given)
    buffer = _buffer(given)
    if buffer is None:
        return None
    if buffer.ndim == 1 and buffer.format == "B":
        return _of_bytes(info, np.asarray(buffer))
    try:
        return np.asarray(buffer)
    except ValueError as error:  # a format that NumPy does not know
        raise InvalidArgumentError(
            f"the buffer cannot be made an array: {error}", actual=f"format {buffer.format!r}"
        ) from error


def _buffer(owner: object) -> memoryview | None:
    """The buffer of an object; None if it has none, or NumPy's scalars, which are not memory."""
    if isinstance(owner, (np.generic, str)):
        return None
    try:
        return memoryview(owner)  # type: ignore[arg-type]  # asked and answered
    except TypeError:
        return None


def _of_bytes(info: TensorInfo, array: Array) -> Array:
    """Bytes as the elements that they are; a dimension that is open follows from their number."""
    if info.data_type.is_string:
        raise InvalidArgumentError(
            "bytes cannot stand for a tensor of strings", fix="Give an array of objects"
        )
    dtype, shape = info.data_type.dtype, info.shape or ()
    open_dimensions = [size for size in shape if size is None]
    known_bytes = math.prod(size for size in shape if size is not None) * dtype.itemsize
    is_known = info.shape is not None and not open_dimensions and known_bytes == array.nbytes
    follows = len(open_dimensions) == 1 and known_bytes and array.nbytes % known_bytes == 0
    if not is_known and not follows:
        raise InvalidArgumentError(
            "the bytes are not the tensor's",
            expected=f"{info.data_type.name} {format_shape(info.shape)}"
            + ("" if open_dimensions or info.shape is None else f", {known_bytes} bytes"),
            actual=f"{array.nbytes} bytes",
            fix="Give an array, whose shape is known" if open_dimensions else "Pass all bytes",
        )
    filled = tuple(array.nbytes // known_bytes if size is None else size for size in shape)
    if not array.flags.c_contiguous:
        array = array.copy()
    if array.size == 0:
        return np.empty(filled, dtype)
    return np.frombuffer(array.data, dtype).reshape(filled)


def _of_dlpack(info: TensorInfo, tensor: Any) -> Array:  # Any: of whatever library
    """A tensor that is handed over as DLPack has it."""
    try:
        kind, number = map(int, tensor.__dlpack_device__())
    except Exception as error:  # of another library
        raise _refused(f"it does not say where it is: {error}", tensor) from error
    if kind not in _HOST_DEVICES:
        reason = f"it is in the memory of device {number} of kind {kind} (DLPack)"
        raise _refused(reason, tensor, "Copy it to the host, or import its memory")
    try:
        array = np.from_dlpack(tensor)
    except Exception as error:  # of another library
        fix = ""
        if info.data_type.is_bit_pattern:
            bits = info.data_type.dtype.name
            fix = f"NumPy has no {info.data_type.name}: give the elements' bits as {bits}"
        raise _refused(str(error), tensor, fix) from error
    return _writable_where_that_is_not_said(tensor, array)


def _writable_where_that_is_not_said(tensor: object, array: Array) -> Array:
    """The array of a library's buffer, where DLPack before 1.0 left open who may write."""
    if array.flags.writeable:
        return array
    buffer = _buffer(tensor)
    if buffer is None or buffer.readonly:
        return array
    other = np.asarray(buffer)
    same = other.dtype == array.dtype and other.shape == array.shape
    return other if same and other.ctypes.data == array.ctypes.data else array


def _refused(reason: str, tensor: object, fix: str = "Copy it to the host") -> InvalidArgumentError:
    """The error for a tensor that cannot be used where it lies."""
    kind = f"{type(tensor).__module__}.{type(tensor).__qualname__}"
    return InvalidArgumentError(
        f"the tensor cannot be taken over: {reason}",
        expected="one in host memory, of a type that NumPy has",
        actual=kind if type(tensor).__module__ in sys.modules else type(tensor).__qualname__,
        fix=fix,
    )
