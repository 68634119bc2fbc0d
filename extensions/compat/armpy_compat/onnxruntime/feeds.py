"""Values that programs give for inputs, as armpy takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_compat.onnxruntime.element_types import (
    STRING,
    WORDS,
    element_type_of,
    numpy_type,
    tensor_word,
)
from armpy_compat.onnxruntime.errors import Fail, InvalidArgument, status_error
from armpy_compat.onnxruntime.node_arguments import NodeArg
from armpy_compat.onnxruntime.ort_value import OrtValue

_Array = npt.NDArray[Any]  # Any: elements of every type

_ELEMENT_TYPES = {tensor_word(number): number for number in WORDS}


def check_names(feed: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Check that a model has the inputs that are given.

    Raises
    ------
    InvalidArgument
        If one has another name.
    """
    for name in feed:
        if name not in known:
            raise status_error(InvalidArgument, f"Invalid input name: {name}")


def converted(argument: NodeArg, value: object) -> object:
    """An input's value as armpy takes it.

    Returns
    -------
    ndarray, list of ndarray or None
        Elements; None for an optional that is empty.

    Raises
    ------
    InvalidArgument
        If the type, rank or a dimension of a tensor is not the input's.
    RuntimeError
        If it cannot be a tensor.
    """
    if isinstance(value, OrtValue):
        value = value.content()
    kind = argument.type.removeprefix("optional(")
    if value is None and kind != argument.type:
        return None
    kind = kind.removesuffix(")") if kind != argument.type else kind
    if kind.startswith("seq("):
        kind = kind.removeprefix("seq(").removesuffix(")")
        if not isinstance(value, list):
            raise RuntimeError(f"Input '{argument.name}' must be a list of numpy arrays.")
        return [_tensor(argument, kind, part) for part in value]
    array = _tensor(argument, kind, value)
    check_shape(argument, array.shape, "input")
    return array


def _tensor(argument: NodeArg, kind: str, value: object) -> _Array:
    """A tensor of the input's element type."""
    expected = _ELEMENT_TYPES.get(kind)
    if value is None:
        raise status_error(Fail, f"Missing Input: {argument.name}")
    if isinstance(value, list):
        dtype = None if expected in (None, STRING) else numpy_type(expected)
        try:
            value = np.asarray(value, dtype)
        except (TypeError, ValueError) as error:
            raise RuntimeError("Could not create tensor from given input list") from error
    elif isinstance(value, tuple | set | str | bytes):
        raise RuntimeError(  # noqa: TRY004 - its kind there
            "Input must be a list of dictionaries or a single numpy array for input"
            f" '{argument.name}'."
        )
    elif isinstance(value, np.generic) or not hasattr(value, "__array__"):
        raise RuntimeError(f"Unable to handle object of type {type(value)}")
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise RuntimeError(f"Numpy_type {array.dtype.num} can't be converted to MLDataType.")
    actual = element_type_of(array.dtype)
    if expected is not None and actual != expected:
        raise status_error(
            InvalidArgument,
            f"Unexpected input data type. Actual: ({tensor_word(actual)}) , expected: ({kind})",
        )
    return _texts(array) if actual == STRING else array


def _texts(array: _Array) -> _Array:
    """Strings of any of NumPy's types, as objects."""
    if array.dtype.kind == "O" and all(type(item) is str for item in array.flat):
        return array
    texts = np.empty(array.shape, object)
    texts.flat[:] = [_text(item) for item in array.flat]
    return texts


def _text(item: Any) -> str:  # Any: an element of an array
    """A string of bytes, of an object, or as it is."""
    item = item.tobytes() if isinstance(item, np.void) else item
    return item.decode() if isinstance(item, bytes) else str(item)


def check_target(argument: NodeArg, target: _Array) -> None:
    """Check that an array can hold an output, as far as the model says before it runs.

    Raises
    ------
    InvalidArgument
        If its type, rank or a dimension is not the output's.
    """
    expected, actual = argument.type, tensor_word(element_type_of(target.dtype))
    if actual != expected:
        raise status_error(
            InvalidArgument,
            f"Unexpected output data type. Actual: ({actual}) , expected: ({expected})",
        )
    check_shape(argument, target.shape, "output")


def check_shape(argument: NodeArg, shape: tuple[int, ...], role: str) -> None:
    """Check rank and sizes of an ``input`` or ``output``, where the model has them.

    Raises
    ------
    InvalidArgument
        If they differ. Arrays of every shape fit where the model declares a scalar.
    """
    expected = argument.shape
    if not expected:
        return
    advice = "Please fix either the inputs/outputs or the model."
    if len(shape) != len(expected):
        raise status_error(
            InvalidArgument,
            f"Invalid rank for {role}: {argument.name} Got: {len(shape)} Expected:"
            f" {len(expected)} {advice}",
        )
    wrong = [
        f" index: {index} Got: {actual} Expected: {dim}\n"
        for index, (actual, dim) in enumerate(zip(shape, expected, strict=True))
        if isinstance(dim, int) and dim >= 0 and actual != dim
    ]
    if wrong:
        raise status_error(
            InvalidArgument,
            f"Got invalid dimensions for {role}: {argument.name} for the following indices\n"
            f"{''.join(wrong)} {advice}",
        )
