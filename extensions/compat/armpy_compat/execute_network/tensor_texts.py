"""Tensors as text: data files, printed outputs, and files of outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from armpy import DataType, TensorInfo
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy_compat.execute_network.log_lines import log

TYPE_NAMES = {
    DataType.FLOAT16: "Float16",
    DataType.FLOAT32: "Float32",
    DataType.QASYMM_U8: "QAsymmU8",
    DataType.SIGNED32: "Signed32",
    DataType.BOOLEAN: "Boolean",
    DataType.QSYMM_S16: "QSymmS16",
    DataType.QSYMM_S8: "QSymmS8",
    DataType.QASYMM_S8: "QAsymmS8",
    DataType.BFLOAT16: "BFloat16",
    DataType.SIGNED64: "Signed64",
}
_PRINTED = (
    DataType.FLOAT32,
    DataType.SIGNED32,
    DataType.QSYMM_S8,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.BOOLEAN,
    DataType.SIGNED64,
)
"""Types of outputs that Arm NN prints; of others it says that they are unexpected."""
_SEPARATORS = re.compile(r"[\t ,:\r\n]+")


def type_name(data_type: DataType) -> str:
    """The name that Arm NN has for a type; armpy's for a type that Arm NN lacks."""
    return TYPE_NAMES.get(data_type, data_type.name)


def described(name: str, info: TensorInfo) -> str:
    """One line of the network's information."""
    shape = ",".join(str(1 if dim is None else dim) for dim in info.shape or ())
    text = f"{name}, [{shape}], {type_name(info.data_type)}"
    quantization = info.quantization
    if quantization is None or not info.data_type.is_quantized:
        return text
    text += f" Quantization Offset: {quantization.zero_point}"
    if len(quantization.scales) > 1:
        return text + " Quantization scales: " + "".join(f"{s:g}, " for s in quantization.scales)
    return text + f" Quantization scale: {quantization.scale:g}"


def read_numbers(path: Path) -> list[float]:
    """The numbers of a text file; other words are reported and left out.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"the file cannot be read: {error}", where=str(path)) from error
    return parsed_numbers(text)


def parsed_numbers(text: str) -> list[float]:
    """The numbers of a text; other words are reported and left out."""
    numbers: list[float] = []
    for token in _SEPARATORS.split(text):
        if not token:
            continue
        try:
            numbers.append(float(token))
        except ValueError:
            log("Error", f"'{token}' is not a valid number. It has been ignored.")
    return numbers


def input_array(path: Path, info: TensorInfo, *, is_real: bool) -> Array:
    """The elements of an input from a data file.

    Parameters
    ----------
    is_real : bool
        Whether quantised inputs are given as real numbers.

    Raises
    ------
    InvalidArgumentError
        If there are more or fewer numbers than elements.
    """
    numbers = np.array(read_numbers(path), np.float64)
    shape = tuple(1 if dim is None else dim for dim in info.shape or ())
    count = int(np.prod(shape))
    if numbers.size != count:
        raise InvalidArgumentError(
            "the number of elements is wrong",
            where=str(path),
            expected=str(count),
            actual=str(numbers.size),
        )
    if is_real and info.quantization is not None and info.data_type.is_quantized:
        stored = info.quantization.quantize(numbers.astype(np.float32), info.data_type)
        return stored.reshape(shape)
    dtype = info.data_type.dtype
    if dtype.kind in "iu":
        low, high = info.data_type.integer_range
        numbers = np.clip(np.trunc(numbers), low, high)
    return numbers.astype(dtype).reshape(shape)


def write_output(stream: TextIO, head: str, data: Array, data_type: DataType) -> None:
    """Write one line of an output: its name and its elements.

    Raises
    ------
    InvalidArgumentError
        If Arm NN does not print the type.
    """
    if data_type not in _PRINTED:
        raise InvalidArgumentError("Unexpected DataType", where=head, actual=type_name(data_type))
    if data.dtype.kind == "f":
        numbers: Sequence[str] = [f"{number:f} " for number in data.reshape(-1).tolist()]
    else:
        numbers = [f"{int(number)} " for number in data.reshape(-1).tolist()]
    stream.write(f"{head}: {''.join(numbers)}\n")


def read_outputs(path: Path) -> list[list[float]]:
    """The numbers of each line of a file that `write_output` has made.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or has no such line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"the file cannot be read: {error}", where=str(path)) from error
    rows = [parsed_numbers(line.rpartition(":")[2]) for line in lines if ":" in line]
    if not rows:
        raise InvalidArgumentError("the file holds no outputs", where=str(path))
    return rows


def byte_level_error(one: Array, other: Array) -> float:
    """Root of the mean square of the differences of all bytes, read as signed ones."""
    first, second = (
        np.ascontiguousarray(array).reshape(-1).view(np.int8) for array in (one, other)
    )
    if first.size != second.size:
        raise InvalidArgumentError(
            "the outputs differ in size", expected=str(first.size), actual=str(second.size)
        )
    if not first.size:
        return 0.0
    difference = first.astype(np.float64) - second.astype(np.float64)
    return float(np.sqrt(np.mean(np.square(difference))))
