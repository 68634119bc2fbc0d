"""Buffers that applications pass: their bytes, or the error for another object."""

from __future__ import annotations

import numpy as np

from armpy_nnapi.codes import OperandCode, is_extension
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.results import bad_data

_BYTES = ("uint8", "int8", "bool")
"""Dtypes that stand for plain bytes where the elements are of one byte, or of a vendor's type."""


def readable_bytes(value: object, operand: Operand, where: str) -> memoryview:
    """The bytes of elements that an application gives.

    Parameters
    ----------
    value : ndarray, bytes-like, int, float or bool
        An array of the operand's dtype; bytes; a number for a scalar.
    where : str
        Name of the place, for messages.

    Raises
    ------
    NnapiError
        BAD_DATA if it is none of these.
    """
    # A Python number has no dtype of its own and takes the operand's.
    if isinstance(value, (bool, int, float)):
        value = _scalar(value, operand, where)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        _check_dtype(array, operand, where)
        # A copy only where the array is not contiguous.
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return _view(value, operand, where)


def writable_bytes(value: object, operand: Operand, where: str) -> memoryview:
    """The bytes that an output is written to; parameters and errors as for `readable_bytes`."""
    if isinstance(value, np.ndarray):
        _check_dtype(value, operand, where)
        if not value.flags.c_contiguous:
            raise bad_data("the array is not contiguous", where=where, fix="Give a C-order array")
        if not value.flags.writeable:
            raise bad_data("the array is read-only", where=where)
        return value.reshape(-1).view(np.uint8).data
    view = _view(value, operand, where)
    if view.readonly:
        raise bad_data("the buffer is read-only", where=where, actual=type(value).__name__)
    return view


def _view(value: object, operand: Operand, where: str) -> memoryview:
    """The bytes of an object that has a buffer."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]  # a non-buffer raises
        # A view without bytes cannot be cast; its length is judged by the caller.
        return view.cast("B") if view.nbytes else view
    except TypeError as error:
        raise bad_data(
            "these are not elements",
            where=where,
            expected=f"an array of {operand.data_type.dtype} or contiguous bytes",
            actual=type(value).__name__,
        ) from error


def _scalar(value: float, operand: Operand, where: str) -> np.ndarray[tuple[int, ...], np.dtype]:
    """A Python number as a scalar operand's element."""
    if operand.is_tensor or is_extension(operand.type):
        raise bad_data(
            "a plain number is given for an operand that is not a plain scalar",
            where=where,
            expected=f"an array of {operand.data_type.dtype} or bytes",
            actual=repr(value),
        )
    dtype = operand.data_type.dtype
    if dtype.kind in "iu" and not isinstance(value, int):
        raise bad_data("the number is not an integer", where=where, actual=repr(value))
    try:
        # NumPy would make infinity of a number that float16 does not hold.
        with np.errstate(over="raise"):
            return np.array(value, dtype)
    except (OverflowError, FloatingPointError) as error:
        raise bad_data(
            f"the number is out of the range of {dtype}", where=where, actual=repr(value)
        ) from error


def _check_dtype(
    array: np.ndarray[tuple[int, ...], np.dtype], operand: Operand, where: str
) -> None:
    """Check that an array's elements can be the operand's."""
    wanted = operand.data_type.dtype
    if array.dtype == wanted:
        return
    # Only the vendor knows the elements of its types; bytes serve for all of them.
    is_vendors = is_extension(operand.type) or operand.type in (
        OperandCode.OEM_SCALAR,
        OperandCode.TENSOR_OEM_BYTE,
    )
    same_size = array.dtype.itemsize == wanted.itemsize
    if is_vendors and (same_size or array.dtype.name in _BYTES):
        return
    if wanted == np.bool_ and array.dtype.name in _BYTES:
        return
    raise bad_data(
        "the array has the wrong dtype",
        where=where,
        expected=f"{wanted} ({operand.type_name})",
        actual=str(array.dtype),
        fix="Convert it, or pass its bytes",
    )
