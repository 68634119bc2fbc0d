"""Values of ``--input``: arrays of files, numbers, and arrays that are filled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from armpy.cli.files import Array, read_lines, read_npy
from armpy.cli.inputs.request import InputRequest
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import Shape, format_shape
from armpy.types import DataType

_WORDS = {"true": 1, "false": 0}

_INTEGER = re.compile(r"[+-]?\d+|true|false")

_SUFFIXES = (".npy", ".txt")


def arrays_with_shapes(specs: Sequence[TensorSpec], request: InputRequest) -> dict[str, Array]:
    """Arrays of those given inputs whose values have a shape of their own, such as files.

    Raises
    ------
    InvalidArgumentError
        If an input does not exist or comes twice, a file cannot be read, or a value is not one
        for the input.
    """
    values = request.values([spec.name for spec in specs])
    arrays: dict[str, Array] = {}
    for spec in specs:
        if spec.name in values:
            sizes = request.shapes.get(spec.name, spec.shape)
            array = _array_of(spec, values[spec.name], sizes)
            if array is not None:
                arrays[spec.name] = array
    return arrays


def given_arrays(
    specs: Sequence[TensorSpec],
    request: InputRequest,
    arrays: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
) -> dict[str, Array]:
    """Arrays of all given inputs.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        As `arrays_with_shapes` makes them; others are kept.
    shapes : mapping of str to sequence of int
        Of all inputs.

    Raises
    ------
    InvalidArgumentError
        If real numbers are given for a quantised input, and are not to be quantised.
    """
    values = request.values([spec.name for spec in specs])
    given = dict(arrays)
    for spec in specs:
        name = spec.name
        if name not in values:
            continue
        if name not in given:
            given[name] = _filled(spec, values[name], shapes[name])
        given[name] = _stored(spec, given[name], quantize=request.quantize_inputs)
    return given


def array_files(request: InputRequest) -> list[str]:
    """Paths of the files that are read, before the names of the inputs are known."""
    values = (option.rpartition("=")[2] for option in request.arrays)
    return [value for value in values if value.endswith(_SUFFIXES)]


def _array_of(spec: TensorSpec, value: str, sizes: Shape | None) -> Array | None:
    """Return the array of a value that has a shape of its own; None if the value fills any shape.

    Parameters
    ----------
    sizes : tuple of (int or None), optional
        Known sizes of the input; numbers fill its last open dimension.

    Raises
    ------
    InvalidArgumentError
        If a file cannot be read, or the value is not one for the input.
    """
    if value.endswith(".txt"):
        return read_lines(value)
    if spec.data_type.is_string and not value.endswith(".npy"):
        return None
    if value.endswith(".npy") or Path(value).is_file():
        return read_npy(value)
    numbers = _numbers(spec, value)
    if len(numbers) == 1:
        return None
    return numbers.reshape(_listed_shape(sizes, len(numbers)))


def _filled(spec: TensorSpec, value: str, shape: Sequence[int]) -> Array:
    """An array of a shape, filled as a value says for which `_array_of` returns None."""
    if spec.data_type.is_string:
        return np.full(shape, value, object)
    numbers = _numbers(spec, value)
    return np.full(shape, numbers[0], numbers.dtype)


def _numbers(spec: TensorSpec, value: str) -> Array:
    """Numbers with commas between them, in the input's type; reals for a quantised input."""
    parts = [part.strip() for part in value.split(",")]
    data_type = spec.data_type
    if not data_type.is_float and all(map(_INTEGER.fullmatch, parts)):
        low, high = (0, 1) if data_type is DataType.BOOLEAN else data_type.integer_range
        integers = [_WORDS[part] if part in _WORDS else int(part) for part in parts]
        if not all(low <= integer <= high for integer in integers):
            raise _refused(spec, value, f"whole numbers from {low} to {high}")
        return np.array(integers, data_type.dtype)
    try:
        reals = [float(part) for part in parts]
    except ValueError as error:
        raise _refused(spec, value, "numbers") from error
    if not (data_type.is_float or data_type.is_quantized):
        raise _refused(spec, value, "whole numbers")
    # Of other types, what runs the model converts real numbers, or refuses them.
    is_stored = data_type.is_float and not data_type.is_bit_pattern
    return np.array(reals, data_type.dtype if is_stored else np.float32)


def _refused(spec: TensorSpec, value: str, expected: str) -> InvalidArgumentError:
    """The error of a value that is not one for an input."""
    return InvalidArgumentError(
        "the value cannot be used",
        where=f"--input {spec.name}={value}",
        expected=f"{expected}, or a file FILE.npy, for {spec.data_type.name} "
        + format_shape(spec.shape),
        actual=f"'{value}'",
    )


def _listed_shape(sizes: Shape | None, count: int) -> tuple[int, ...]:
    """A shape for some numbers: open sizes are 1, but for the last, which takes all numbers."""
    dims = (None,) if sizes is None else sizes
    open_axes = [axis for axis, dim in enumerate(dims) if dim is None]
    known = prod(dim for dim in dims if dim is not None)
    shape = [1 if dim is None else dim for dim in dims]
    if open_axes and known and count % known == 0:
        shape[open_axes[-1]] = count // known
    return tuple(shape) if prod(shape) == count else (count,)


def _stored(spec: TensorSpec, array: Array, *, quantize: bool) -> Array:
    """An array as given, but real numbers for a quantised input are quantised if asked for."""
    if not spec.data_type.is_quantized or array.dtype.kind != "f":
        return array
    if not quantize:
        raise InvalidArgumentError(
            "the array holds real numbers, the input is quantised",
            where=f"input '{spec.name}'",
            expected=str(spec.data_type.dtype),
            fix="Quantise them with --quantize-inputs",
        )
    return spec.quantize(array)
