"""Contents of tensors in requests and answers: numbers or strings in lists, or bytes.

Notes
-----
Nothing is rounded on the way in: a number that a datatype cannot hold is refused, but for the
fraction of a float, which is rounded as everywhere.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.strings import encoded
from armpy.errors import InvalidArgumentError, MemoryQuotaError
from armpy.tensor import MAX_RANK, TensorInfo, format_shape
from armpy.types import DataType
from armpy_serving.protocol import dtype_of

Array = npt.NDArray[np.generic]

_FIELDS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Field of gRPC's ``InferTensorContents`` that has a datatype's elements; the rest are sent raw."""

_ALL_FIELDS = tuple(dict.fromkeys(_FIELDS.values()))
"""Every field of that message, once."""

RAW_ONLY = frozenset(("FP16", "BF16"))
"""Datatypes that gRPC has no typed contents for."""


def array_of_bytes(
    name: str, datatype: str, shape: Sequence[int], raw: bytes | bytearray | memoryview
) -> Array:
    """The array that raw bytes are, without a copy.

    Parameters
    ----------
    name : str
        Name of the tensor, for messages.
    raw : bytes-like
        Elements, outermost dimension first, little-endian, without gaps; those of BYTES after
        their lengths, of 4 bytes.

    Raises
    ------
    InvalidArgumentError
        If datatype or shape cannot be used, or there are more or fewer bytes.
    """
    where = f"input '{name}'"
    dtype = np.dtype(dtype_of(datatype, where)).newbyteorder("<")
    dims = _checked_shape(where, shape)
    if datatype == "BYTES":
        return _strings_of_bytes(where, dims, bytes(raw))
    num_bytes = math.prod(dims) * dtype.itemsize
    if len(raw) != num_bytes:
        raise InvalidArgumentError(
            "the number of bytes is not that of the shape",
            where=where,
            expected=f"{num_bytes} for {datatype} {format_shape(dims)}",
            actual=str(len(raw)),
        )
    array: Array = np.frombuffer(raw, dtype).reshape(dims)
    if datatype == "BOOL" and (array.view(np.uint8) > 1).any():
        raise InvalidArgumentError(
            "a byte is not a BOOL",
            where=where,
            expected="0 or 1",
            actual=str(array.view("u1").max()),
        )
    return array if sys.byteorder == "little" else array.astype(dtype.newbyteorder("="))


def _strings_of_bytes(where: str, dims: tuple[int, ...], raw: bytes) -> Array:
    """Elements of BYTES, each after its length."""
    count, at = math.prod(dims), 0
    elements: list[bytes] = []
    # Each has a length at least, so that no shape makes this long.
    while len(elements) < count and at + _LENGTH_BYTES <= len(raw):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(raw[at:begin], "little")
        elements.append(raw[begin:at])
    if len(elements) != count or at != len(raw):
        raise InvalidArgumentError(
            "the bytes are not those of the shape",
            where=where,
            expected=f"{count} elements of BYTES, each after its length of {_LENGTH_BYTES} bytes",
            actual=f"{len(raw)} bytes, of which {len(elements)} elements take {at}",
        )
    strings = np.empty(count, object)
    strings[:] = elements
    return strings.reshape(dims)


_LENGTH_BYTES = 4


def array_of_numbers(name: str, datatype: str, shape: Sequence[int], data: object) -> Array:
    """The array that numbers, or strings, in a list are.

    Parameters
    ----------
    name, datatype, shape
        Arguments as for `array_of_bytes`.
    data : sequence
        Elements one after the other, or nested as the shape is.

    Raises
    ------
    InvalidArgumentError
        If datatype or shape cannot be used, the data are not of the shape, or an element is no
        number of the datatype.
    """
    where = f"input '{name}'"
    dtype = np.dtype(dtype_of(datatype, where))
    dims = _checked_shape(where, shape)
    if datatype == "BF16":
        raise InvalidArgumentError(
            "BF16 cannot be sent as numbers", where=where, fix="Send its bytes (binary or raw data)"
        )
    array = _plain_array(where, datatype, data)
    # Empty lists leave the dimensions inside of them open.
    is_other = array.size and array.ndim > 1 and array.shape != dims
    size = math.prod(dims)
    if array.size != size and array.ndim == 1:
        elements = "strings" if datatype == "BYTES" else "numbers"
        raise InvalidArgumentError(
            "the data are not of the shape",
            where=where,
            expected=f"{size} {elements} for {format_shape(dims)}",
            actual=str(array.size),
            fix="Send all of them, or correct 'shape'",
        )
    if array.size != size or is_other:
        raise InvalidArgumentError(
            "the data are not of the shape",
            where=where,
            expected=format_shape(dims),
            actual=format_shape(array.shape),
            fix="Nest them as the shape is, or send one flat list",
        )
    exact = array if datatype == "BYTES" else _exactly(where, datatype, dtype, array)
    return exact.reshape(dims)


def array_of_contents(
    name: str,
    datatype: str,
    shape: Sequence[int],
    contents: Any,  # Any: a message of gRPC, of any generated class
) -> Array:
    """The array that typed contents of gRPC (``InferTensorContents``) are; see `array_of_numbers`.

    Raises
    ------
    InvalidArgumentError
        As for `array_of_numbers`, and if the datatype is sent raw only, or elements are in the
        field of another.
    """
    field = _FIELDS.get(datatype)
    if field is not None:
        filled = [
            field_name
            for field_name in _ALL_FIELDS
            if field_name != field and getattr(contents, field_name, None)
        ]
        if filled:
            raise InvalidArgumentError(
                "elements are in the field of another datatype",
                where=f"input '{name}'",
                expected=f"{field} for {datatype}",
                actual=", ".join(filled),
                fix="Put them into the one field, or say what datatype they are",
            )
        return array_of_numbers(name, datatype, shape, list(getattr(contents, field)))
    dtype_of(datatype, f"input '{name}'")
    raise InvalidArgumentError(
        f"{datatype} has no typed contents",
        where=f"input '{name}'",
        fix="Send its bytes in raw_input_contents",
    )


def bytes_of(array: Array, limit_bytes: int = sys.maxsize, used_bytes: int = 0) -> bytes:
    """The raw bytes of an array: little-endian, outermost dimension first, without gaps.

    Parameters
    ----------
    limit_bytes : int
        Most that strings may take, with those of other tensors.
    used_bytes : int
        What others take.

    Raises
    ------
    MemoryQuotaError
        If they take more: one string may be many elements of an array.
    """
    if array.dtype.hasobject:
        elements = encoded_strings(array, limit_bytes, used_bytes)
        return b"".join(len(e).to_bytes(_LENGTH_BYTES, "little") + e for e in elements)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def encoded_strings(array: Array, limit_bytes: int, size_bytes: int = 0) -> Iterator[bytes]:
    """The bytes of strings, as far as the limit allows after `size_bytes`."""
    for text in array.reshape(-1).tolist():
        element = encoded(text)
        size_bytes += _LENGTH_BYTES + len(element)
        if size_bytes > limit_bytes:
            raise answer_too_large(limit_bytes)
        yield element


def answer_too_large(limit_bytes: int) -> MemoryQuotaError:
    """The error for an answer whose body is larger than the model's limit."""
    return MemoryQuotaError(
        "the answer is too large",
        expected=f"at most {limit_bytes} bytes (memory_limit_bytes)",
        fix="Ask for binary data (parameter binary_data), for fewer outputs, or with fewer rows",
    )


def json_parts(name: str, array: Array) -> Iterator[str]:
    """JSON of an array's elements, without brackets, in parts of some 100 KB.

    Raises
    ------
    InvalidArgumentError
        As `check_json`.
    """
    flat, separator = array.reshape(-1), ""
    for begin in range(0, flat.size, _PART_ELEMENTS):
        part = flat[begin : begin + _PART_ELEMENTS]
        is_long = array.dtype.hasobject and sum(map(len, part)) > _PART_CHARACTERS
        for elements in part.reshape(-1, 1) if is_long else (part,):
            numbers = numbers_of(name, elements)
            if is_long:
                yield f'{separator}"'
                text = str(numbers[0])
                for start in range(0, len(text), _PART_CHARACTERS):
                    yield json.dumps(text[start : start + _PART_CHARACTERS])[1:-1]
                yield '"'
            else:
                yield separator + json.dumps(numbers, separators=(",", ":"))[1:-1]
            separator = ","


_PART_ELEMENTS = 1 << 12
_PART_CHARACTERS = 1 << 14


def numbers_of(name: str, array: Array) -> list[bool | int | float | str]:
    """An array's elements one after the other, for JSON.

    Raises
    ------
    InvalidArgumentError
        If one is not a finite number, or no text, which JSON cannot say.
    """
    check_json(name, array)
    numbers: list[bool | int | float | str] = array.ravel().tolist()
    return numbers


def check_json(name: str, array: Array) -> None:
    """Check that JSON can express an output's elements.

    Raises
    ------
    InvalidArgumentError
        If one is not a finite number, or a string that is not UTF-8.
    """
    if array.dtype.hasobject and any(map(_ESCAPED.search, array.reshape(-1).tolist())):
        raise InvalidArgumentError(
            "JSON cannot say bytes that are not UTF-8",
            where=f"output '{name}'",
            fix="Ask for binary data (parameter binary_data), or use gRPC",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidArgumentError(
            "JSON cannot say infinity or NaN",
            where=f"output '{name}'",
            fix="Ask for binary data (parameter binary_data), or use gRPC",
        )


_ESCAPED = re.compile("[\udc80-\udcff]")
"""Characters that stand for bytes that are not UTF-8."""


def contents_of(
    datatype: str, array: Array, limit_bytes: int = sys.maxsize
) -> tuple[str, list[bool | int | float | bytes]]:
    """An array's elements for gRPC, and the field of ``InferTensorContents`` that has them.

    Parameters
    ----------
    datatype : str
        Datatype that is not in `RAW_ONLY`.
    limit_bytes : int
        As of `bytes_of`; MemoryQuotaError is raised as there.
    """
    if datatype == "BYTES":
        return _FIELDS[datatype], [*encoded_strings(array, limit_bytes)]
    return _FIELDS[datatype], array.ravel().tolist()


def _checked_shape(where: str, shape: Iterable[object]) -> tuple[int, ...]:
    """A request's shape."""
    dims = tuple(shape)
    # Sizes of more than NumPy can count are not sizes, even where another one is 0.
    is_whole = all(type(n) is int and 0 <= n < 2**63 for n in dims)
    if not is_whole:
        fault = "a size of the shape is negative or not a whole number"
    elif len(dims) > MAX_RANK:
        fault = "the shape has too many dimensions"
    elif TensorInfo(dims, DataType.BOOLEAN).is_addressable:  # type: ignore[arg-type]  # integers, as was just seen
        return dims  # type: ignore[return-value]  # as above
    else:
        fault = "the shape is too large for an array"
    raise InvalidArgumentError(
        fault,
        where=where,
        expected=f"at most {MAX_RANK} whole numbers of 0 or more",
        actual=str(list(dims))[:80],
    )


_KINDS = {
    bool: "true or false",
    int: "whole numbers",
    float: "fractions",
    str: "text",
    type(None): "null",
}


def _plain_array(where: str, datatype: str, data: object) -> Array:
    """Nested or flat numbers or strings, as NumPy reads them."""
    if datatype == "BYTES":
        return _plain_strings(where, data)
    # Before NumPy sees them: of one long text among many numbers it makes an array of such texts,
    # which takes more memory than there is.
    allowed: set[type] = {int, float}
    if datatype == "BOOL":
        allowed = {bool}
    elif "INT" in datatype:
        allowed = {int}
    for kind in _kinds_in(where, data, 0) - allowed:
        raise _no_numbers(where, datatype, _KINDS.get(kind, kind.__name__))
    try:
        array: Array = np.asarray(data)
    except (ValueError, OverflowError) as error:  # lists of different lengths
        raise _no_numbers(where, datatype, str(error)) from error
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and datatype in ("INT64", "UINT64")):
        # Integers of more than 64 bits, or some beyond int64 beside negative ones: NumPy makes
        # objects or floats of these, which would round.
        array = np.asarray(data, dtype=object)
    return array


def _plain_strings(where: str, data: object) -> Array:
    """Nested or flat strings as an array of objects."""
    # Of objects: of one long text among many, NumPy makes an array of such texts.
    kinds, strings = _kinds_in(where, data, 0), np.array(data, object)
    # Lists of different lengths are elements then.
    kinds |= set(map(type, strings.reshape(-1).tolist()))
    for kind in kinds - {str, bytes}:
        raise InvalidArgumentError(
            "the data are not BYTES",
            where=where,
            expected="strings",
            actual=_KINDS.get(kind, "lists of different lengths"),
        )
    return strings


def _kinds_in(where: str, data: object, depth: int) -> set[type]:
    """Types of the elements of nested lists."""
    if not isinstance(data, (list, tuple)) or depth > MAX_RANK:
        raise InvalidArgumentError(
            "the data are not lists of numbers",
            where=where,
            expected=f"at most {MAX_RANK} lists in each other",
            actual=type(data).__name__,
        )
    kinds = set(map(type, data))
    if nested := kinds & {list, tuple}:
        kinds -= nested
        for inner in data:
            if type(inner) in nested:
                kinds |= _kinds_in(where, inner, depth + 1)
    return kinds


def _exactly(where: str, datatype: str, dtype: np.dtype[Any], numbers: Array) -> Array:
    """Numbers of the right kind as a datatype's, if it can hold them."""
    if numbers.size and dtype.kind in "iu":
        low, high = numbers.min(), numbers.max()
        bounds = np.iinfo(dtype)
        if low < bounds.min or high > bounds.max:
            actual = f"numbers from {low} to {high}" if low != high else str(low)
            raise _no_numbers(where, datatype, actual)
    if numbers.dtype.kind == "O" and dtype.kind == "f":
        numbers = _as_floats(where, datatype, numbers)
    with np.errstate(over="ignore"):
        converted = numbers.astype(dtype)
    if dtype.kind == "f" and (np.isinf(converted) & np.isfinite(numbers)).any():
        raise _no_numbers(where, datatype, f"{np.abs(numbers).max()}, which is too large for it")
    return converted


def _as_floats(where: str, datatype: str, numbers: Array) -> Array:
    """Whole numbers of more than 64 bits as floats."""
    try:
        return numbers.astype(np.float64)
    except OverflowError as error:
        raise _no_numbers(where, datatype, "a number that is too large for it") from error


def _no_numbers(where: str, datatype: str, actual: str) -> InvalidArgumentError:
    """The error for data that are not numbers, or not those of a datatype."""
    expected = "true or false" if datatype == "BOOL" else f"numbers that {datatype} can hold"
    if "INT" in datatype:
        bounds = np.iinfo(np.dtype(dtype_of(datatype)))
        expected = f"whole numbers from {bounds.min} to {bounds.max}"
    return InvalidArgumentError(
        f"the data are not {datatype}", where=where, expected=expected, actual=actual
    )
