"""Write tables of the TFLite schema: their fields, vectors, options and the values of constants.

Names of tables and fields are those of the functions that the `tflite` package generates from the
schema: the field "FusedActivationFunction" of the table "AddOptions" is written by
`AddOptionsAddFusedActivationFunction`.

References
----------
TFLite schema 3c, as generated in the `tflite` package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Union

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

BUFFER_ALIGNMENT_BYTES = 16

OptionValue = (
    bool | int | float | str | bytes | Sequence[int] | Sequence[float] | npt.NDArray[np.generic]
)

# Operators whose options table is not named after them.
_REDUCERS = ("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
_OPTIONS_TABLES = {
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimumOptions"),
    **dict.fromkeys(("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"), "RandomOptions"),
    **dict.fromkeys(_REDUCERS, "ReducerOptions"),
}

# Option fields whose values may be given as the name of an enumerator.
_TYPE_FIELDS = (
    "idx_out_type",
    "in_data_type",
    "key_dtype",
    "out_data_type",
    "out_type",
    "output_type",
    "value_dtype",
)
_OPTION_ENUMS = {
    "algorithm": tflite.RngAlgorithm,
    "combiner": tflite.CombinerType,
    "compare_type": tflite.StablehloComparisonType,
    "comparison_direction": tflite.StablehloComparisonDirection,
    "fused_activation_function": tflite.ActivationFunctionType,
    "kernel_type": tflite.LSTMKernelType,
    "mode": tflite.MirrorPadMode,
    "padding": tflite.Padding,
    "quantized_bias_type": tflite.TensorType,
    "reduce_function": tflite.ReduceWindowFunction,
    "type": tflite.LSHProjectionType,
    "weights_format": tflite.FullyConnectedOptionsWeightsFormat,
    **dict.fromkeys(_TYPE_FIELDS, tflite.TensorType),
}

# How the values of a constant are stored; other types take their data as bytes.
_STORAGE_DTYPES: dict[int, npt.DTypeLike] = {
    tflite.TensorType.FLOAT32: "<f4",
    tflite.TensorType.FLOAT16: "<f2",
    tflite.TensorType.FLOAT64: "<f8",
    tflite.TensorType.BFLOAT16: "<u2",
    tflite.TensorType.COMPLEX64: "<c8",
    tflite.TensorType.COMPLEX128: "<c16",
    tflite.TensorType.BOOL: "?",
    tflite.TensorType.INT8: "i1",
    tflite.TensorType.INT16: "<i2",
    tflite.TensorType.INT32: "<i4",
    tflite.TensorType.INT64: "<i8",
    tflite.TensorType.UINT8: "u1",
    tflite.TensorType.UINT16: "<u2",
    tflite.TensorType.UINT32: "<u4",
    tflite.TensorType.UINT64: "<u8",
}

# Data types of option vectors: an integer of the element width in bytes, but for these.
_INTEGER_DTYPES: dict[int, npt.DTypeLike] = {1: np.uint8, 4: np.int32, 8: np.int64}
_FLOAT_VECTORS = {("BucketizeOptions", "Boundaries")}

# Any: vectors of every dtype.
Field = Union[bool, int, float, str, bytes, npt.NDArray[Any], "Table", list["Table"], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A flatbuffer table to write."""

    name: str  # its name in the schema
    fields: Mapping[str, Field]  # its fields; a field of None is left out


def write(builder: flatbuffers.Builder, value: Field) -> int | float:
    """Write a field's value, children first, and return what its table stores.

    Returns the value itself, or the offset at which it was written.
    """
    if isinstance(value, Table):
        return _write_table(builder, value)
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, bytes):
        builder.Prep(BUFFER_ALIGNMENT_BYTES, len(value))
        return int(builder.CreateByteVector(value))
    if isinstance(value, np.ndarray):
        return int(builder.CreateNumpyVector(value))
    if isinstance(value, list):
        return _write_tables(builder, value)
    return value or 0


def _write_table(builder: flatbuffers.Builder, table: Table) -> int:
    """Write a table with the `tflite` package's generated functions."""
    stored = {
        name: write(builder, value) for name, value in table.fields.items() if value is not None
    }
    getattr(tflite, f"{table.name}Start")(builder)
    for name, value in stored.items():
        getattr(tflite, f"{table.name}Add{name}")(builder, value)
    return int(getattr(tflite, f"{table.name}End")(builder))


def _write_tables(builder: flatbuffers.Builder, tables: Sequence[Table]) -> int:
    """Write a vector of tables."""
    offsets = [_write_table(builder, table) for table in tables]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def options_table_of(code: int) -> str:
    """Return the name of an operator's options table, for example "Conv2DOptions" for CONV_2D.

    Raises ValueError if the schema has no options table for the operator.
    """
    name = next(
        (name for name, value in _enumerators(tflite.BuiltinOperator).items() if value == code),
        str(code),
    )
    if name in _OPTIONS_TABLES:
        return _OPTIONS_TABLES[name]
    wanted = name.replace("_", "").lower() + "options"
    tables = (*_enumerators(tflite.BuiltinOptions), *_enumerators(tflite.BuiltinOptions2))
    for table in tables:
        if table.lower() == wanted:
            return table
    raise ValueError(f"operator {name} has no options table in the schema")


def checked_options(table: str, options: Mapping[str, OptionValue]) -> Table:
    """Return an options table, having checked its names against the schema.

    Raises ValueError if a field or an enumerator is not in the schema, or values do not fit their
    vector.
    """
    fields: dict[str, Field] = {}
    for name, value in options.items():
        field_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        if not hasattr(tflite, f"{table}Add{field_name}"):
            raise ValueError(f"{table} has no field {name!r} in the schema")
        if name in _OPTION_ENUMS and isinstance(value, (str, int)):
            fields[field_name] = enumerator(_OPTION_ENUMS[name], value)
        elif isinstance(value, (bool, int, float, str, bytes)):
            fields[field_name] = value
        else:
            fields[field_name] = _option_vector(table, field_name, value)
    return Table(table, fields)


def _option_vector(
    table: str, field_name: str, values: Sequence[int] | Sequence[float] | npt.NDArray[np.generic]
) -> npt.NDArray[np.generic]:
    """Return an option's values in the data type of its vector."""
    start_vector = getattr(tflite, f"{table}Start{field_name}Vector")
    is_float = (table, field_name) in _FLOAT_VECTORS
    dtype = np.float32 if is_float else _INTEGER_DTYPES[start_vector(_WidthProbe(), 0)]
    return _stored(values, dtype)


class _WidthProbe:
    """Stand-in for a builder that records the element width of a `StartVector` function."""

    def StartVector(self, width_bytes: int, num_elements: int, alignment_bytes: int) -> int:
        return width_bytes


def int32s(values: Sequence[int] | None) -> npt.NDArray[np.int32] | None:
    """Return a vector of int32."""
    return None if values is None else np.asarray(values, np.int32)


def constant_bytes(data: npt.ArrayLike | bytes, type_code: int) -> bytes:
    """Return the little-endian bytes of a constant.

    Raises ValueError if the values do not fit the type, or the type takes its data as bytes only.
    """
    if isinstance(data, bytes):
        return data
    if type_code not in _STORAGE_DTYPES:
        raise ValueError(f"tensor type {type_code}: data must be bytes; got {type(data).__name__}")
    return _stored(data, _STORAGE_DTYPES[type_code]).tobytes()


def _stored(values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """Return the values as `dtype`, having checked that integers and booleans stay the same."""
    array = np.asarray(values)
    stored = array.astype(dtype)
    if stored.dtype.kind in "biu" and not np.array_equal(stored, array):
        raise ValueError(f"values do not fit {stored.dtype}; got {array.tolist()}")
    return stored


@cache
def _enumerators(enumeration: type) -> dict[str, int]:
    """Return the names and numbers of a generated enumeration."""
    members = vars(enumeration).items()
    return {n: v for n, v in members if isinstance(v, int) and not n.startswith("_")}


def enumerator(enumeration: type, value: str | int) -> int:
    """Return the number of an enumerator given by name; a number passes through.

    Raises ValueError if the enumeration has no such name.
    """
    if isinstance(value, int):
        return value
    numbers = _enumerators(enumeration)
    if value not in numbers:
        raise ValueError(f"{enumeration.__name__} has no {value!r} in the schema")
    return numbers[value]
