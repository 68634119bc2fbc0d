"""Conversion of what a caller passes into arrays that a network can use, or why not."""

from __future__ import annotations

import reprlib
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from armpy.errors import ArmpyError, InvalidArgumentError, MemoryQuotaError
from armpy.execution import arrays  # few models have strings: imported when one has
from armpy.execution.arrays.dlpack import as_view
from armpy.tensor import Quantization, TensorInfo, check_shape_fits, format_shape, shapes_agree

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.ops.operation import Array
    from armpy.types import DataType


_NUMBERS = "biufc"
"""Kinds of dtypes that are numbers, or booleans."""


def as_input(
    name: str,  # the input's name, for messages
    info: TensorInfo,  # what the network takes; dimensions may be open
    # Any strides, byte order and writability; also tensors with ``__dlpack__`` and buffers (see
    # `armpy.execution.arrays.dlpack.as_view`).
    given: object,
    *,
    quantize: bool = False,  # whether real numbers are quantised for a quantised input
    limit_bytes: int = sys.maxsize,  # the most that a copy of it may take
) -> Array:
    """Check and convert one input.

    Raises InvalidArgumentError if type or shape do not fit; MemoryQuotaError if a copy would take
    too much.

    Returns an array, dtype of `info`, C-contiguous, native byte order: `given` itself, or over its
    memory, wherever possible.
    """
    dtype = info.data_type.dtype
    if info.data_type.is_string:
        array = arrays.strings.as_string_array(name, given, limit_bytes)
    else:
        array = given if type(given) is np.ndarray else _as_array(name, info, given)
    # Elements may stand for one another: a few bytes can be an array of any size.
    if array.size * dtype.itemsize > limit_bytes:
        raise MemoryQuotaError(
            "the input needs too much memory",
            where=f"input '{name}'",
            expected=f"at most {limit_bytes} bytes (memory_limit_bytes)",
            actual=f"{array.size * dtype.itemsize} bytes",
        )
    if array.dtype != dtype:
        array = _converted(name, info, array, quantize)
    if array.shape != info.shape:
        check_shape_fits(name, info.shape, array.shape)
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        # ascontiguousarray would make a scalar one-dimensional.
        array = np.array(array, order="C", copy=True)
    return array


def _as_array(name: str, info: TensorInfo, argument: object) -> Array:
    """An array of something that is none: nested lists, numbers, other libraries' tensors."""
    try:
        if isinstance(argument, (int, float, list, tuple)) and not isinstance(argument, bool):
            return _of_numbers(name, info, argument)
        view = None if isinstance(argument, np.ndarray) else as_view(info, argument)
        array = np.asarray(argument) if view is None else view
    except ArmpyError as error:
        if error.where.startswith("input "):
            raise
        raise _located(f"input '{name}'", error) from error.__cause__
    except Exception as error:  # foreign objects raise any error when they are converted
        raise InvalidArgumentError(
            f"the value cannot be made an array: {error}",
            where=f"input '{name}'",
            expected=f"an array of {info.data_type.dtype}",
            actual=type(argument).__name__,
        ) from error
    is_number = array.dtype.kind in _NUMBERS or is_small(array.dtype)
    if not is_number and array.dtype != info.data_type.dtype:
        raise _no_array(name, info, argument)
    return array


def _of_numbers(name: str, info: TensorInfo, numbers: object) -> Array:
    """An array of a number, or of nested lists of numbers."""
    try:
        guess = np.asarray(numbers)
    except ValueError as error:
        raise _no_array(name, info, numbers) from error
    wanted = info.data_type.dtype
    if guess.dtype.kind not in _NUMBERS:
        raise _no_array(name, info, numbers)
    # A number beyond the type's range would become an infinity without a word.
    with np.errstate(over="raise"):
        return guess.astype(wanted) if _is_lossless(guess, wanted) else guess


def _located(where: str, error: ArmpyError) -> ArmpyError:
    """An error with the name of the input or output that it is about."""
    from armpy.ops.operation import located  # noqa: PLC0415 - a compiled file starts without it

    return located(lambda: where, error)


def _no_array(name: str, info: TensorInfo, argument: object) -> InvalidArgumentError:
    """The error for an object that is not an array of numbers, nor can be made one."""
    is_plain = argument is None or isinstance(argument, (str, int, list, tuple, dict))
    actual = reprlib.repr(argument) if is_plain else type(argument).__name__
    if isinstance(argument, np.ndarray):
        actual = f"an array of {argument.dtype} {format_shape(argument.shape)}"
    return InvalidArgumentError(
        "this is not an array of numbers",
        where=f"input '{name}'",
        expected=f"an array of {info.data_type.dtype} {format_shape(info.shape)}",
        actual=actual,
        fix="Pass an array of this type and shape",
    )


def _is_lossless(array: Array, dtype: np.dtype[np.generic]) -> bool:
    """Return whether plain Python numbers keep their values (or are rounded floats) in a dtype."""
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # kind is checked
        return bool(array.size == 0 or (array.min() >= limits.min and array.max() <= limits.max))
    return array.dtype.kind in "iuf" and dtype.kind == "f"


_OTHER_NAMES = {"FLOAT8_E8M0FNU": "FLOAT8_E8M0", "FLOAT4_E2M1FN": "FLOAT4_E2M1"}
"""Types of ``ml_dtypes`` that armpy calls otherwise."""


def is_small(dtype: np.dtype[np.generic]) -> bool:
    """Return whether a type is one that a library adds to NumPy: a small float or integer.

    ``ml_dtypes`` has them, which JAX, TensorFlow and onnx use. They are known by their names, so
    that armpy does not depend on it. NumPy calls 2 what libraries register.
    """
    return dtype.isbuiltin == 2 and dtype.name.lstrip("bu").startswith(("float", "int"))


def small_dtype(data_type: DataType) -> np.dtype[np.generic] | None:
    """The type that ``ml_dtypes`` has for small floats and integers.

    Returns None for other data types, where the package is not installed, or has no such type.
    """
    if not (data_type.is_bit_pattern or data_type.is_narrow):
        return None
    try:
        package = import_module("ml_dtypes")
    except ImportError:
        return None
    names = {own: other for other, own in _OTHER_NAMES.items()}
    name = names.get(data_type.name, data_type.name).lower()
    kind = getattr(package, name.replace("unsigned", "uint").replace("signed", "int"), None)
    return None if kind is None else np.dtype(kind)


def as_stored(array: Array) -> Array:
    """Elements of an output as armpy stores them: small floats as bits, small integers as bytes."""
    if not is_small(array.dtype):
        return array
    is_unsigned = array.dtype.name.startswith("u")
    if "float" in array.dtype.name:
        return array.view(f"u{array.dtype.itemsize}")
    return array.astype(np.uint8 if is_unsigned else np.int8)


def _widened(info: TensorInfo, array: Array) -> Array:
    """Small elements as float32 or bytes, exactly; their bits on request."""
    name = array.dtype.name.upper()
    if info.data_type.name == _OTHER_NAMES.get(name, name) and info.data_type.is_bit_pattern:
        return array.view(info.data_type.dtype)
    if "FLOAT" in name:
        return array.astype(np.float32)
    return array.astype(np.uint8 if name.startswith("U") else np.int8)


def _converted(name: str, info: TensorInfo, array: Array, quantize: bool) -> Array:
    """An array in the input's dtype, if nothing is lost or the caller asked for it."""
    dtype = info.data_type.dtype
    if is_small(array.dtype):
        array = _widened(info, array)
    # Another byte order changes no element, so it is the same type to the caller.
    if array.dtype.newbyteorder("=") == dtype:
        return array.astype(dtype, copy=False)
    if array.dtype.kind not in _NUMBERS:
        raise _no_array(name, info, array)
    if quantize and info.data_type.is_quantized and array.dtype.kind == "f":
        try:
            return quantize_array(array, info)
        except InvalidArgumentError as error:
            raise _located(f"input '{name}'", error) from None
    fix = f"Convert it with array.astype('{dtype}')"
    if dtype.kind in "iu":
        low, high = info.data_type.integer_range
        fix = f"Convert it to {dtype}, whose values are {low} to {high}"
        if array.dtype.kind in "iu" and not _is_lossless(array, dtype):
            there = f"Its values of {array.min()} to {array.max()} do not fit"
            fix = f"{there} {low} to {high}, and astype would wrap them: shift or scale them first"
    if info.data_type.is_quantized and array.dtype.kind == "f":
        fix = "Load the model with armpy.load(..., quantize_inputs=True) to pass real numbers"
    # Without armpy's name for the type; NumPy's says it.
    rest = str(info).removeprefix(info.data_type.name)
    raise InvalidArgumentError(
        "the array has the wrong type",
        where=f"input '{name}'",
        expected=f"{dtype}{rest}",
        actual=f"{array.dtype} {format_shape(array.shape)}",
        fix=fix,
    )


def quantize_array(
    real: Array,  # any float dtype
    info: TensorInfo,  # quantised
) -> Array:
    """Quantise real numbers.

    Raises InvalidArgumentError if a number is not finite.

    Returns an array, dtype of `info`: as of `Quantization.quantize`.
    """
    how = info.quantization or Quantization.per_tensor(1.0)
    return how.quantize(real, info.data_type)


def dequantize_array(stored: Array, info: TensorInfo) -> Array:
    """Real numbers (float32) that stored integers stand for; other types as they are."""
    if not info.data_type.is_quantized or info.quantization is None:
        return stored
    return info.quantization.dequantize(stored)


def check_output_array(
    name: str,  # the output's name, for messages
    info: TensorInfo,
    # Tensor with ``__dlpack__``, or buffer; see `armpy.execution.arrays.dlpack.as_view`.
    given: object,
) -> Array:
    """Check an array that the caller wants an output written to.

    Raises InvalidArgumentError if it cannot take the output as it is.

    Returns an array, dtype of `info`, C-contiguous: `given` itself, or an array over its memory.
    """
    dtype = info.data_type.dtype
    array = given if isinstance(given, np.ndarray) else _view(name, info, given)
    if array is None:
        raise _unusable(name, info, type(given).__name__)
    if array.dtype != dtype or not shapes_agree(info.shape, array.shape):
        raise _unusable(name, info, f"{array.dtype} {format_shape(array.shape)}")
    if not array.flags.writeable:
        raise _unusable(name, info, "a read-only array")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise _unusable(name, info, memory_description(array))
    return array


def memory_description(given: object) -> str:
    """An array's dtype, shape and what keeps its memory from being used in place."""
    if not isinstance(given, np.ndarray):
        return type(given).__name__
    flags, is_native = given.flags, given.dtype.isnative
    obstacles = {
        f"not contiguous (strides {given.strides})": not flags.c_contiguous,
        "not aligned": not flags.aligned,
        "not in native byte order": not is_native,
    }
    listed = " and ".join(text for text, applies in obstacles.items() if applies)
    return f"{given.dtype} {format_shape(given.shape)}{', ' if listed else ''}{listed}"


def _view(name: str, info: TensorInfo, argument: object) -> Array | None:
    """An array over the memory that an output is to be written to."""
    try:
        return as_view(info, argument)
    except ArmpyError as error:
        raise _located(f"output '{name}'", error) from error.__cause__


def _unusable(name: str, info: TensorInfo, actual: str) -> InvalidArgumentError:
    """The error for something that an output cannot be written to."""
    shape = format_shape(info.shape)
    return InvalidArgumentError(
        "the array cannot take the output",
        where=f"output '{name}'",
        expected=f"a writable C-contiguous {info.data_type.dtype} array of shape {shape}",
        actual=actual,
        fix="Make it with np.empty(shape, dtype), or leave it out",
    )


def may_overlap(first: Array, second: Array) -> bool:
    """Return whether two arrays may share memory; different arrays that own theirs do not."""
    if first is second:
        return first.size > 0
    # An array without a base may still be made of an address that others have.
    if first.flags.owndata and second.flags.owndata:
        return False
    return bool(np.may_share_memory(first, second))
