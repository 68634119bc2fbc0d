"""Element types of a .tflite tensor: its type together with its quantisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.core.flatbuffers.reader import TableReader
from armpy.errors import InvalidArgumentError
from armpy.frontends.tflite.reader import enumerators
from armpy.tensor import Quantization, TensorInfo, check_quantization
from armpy.types import DataType

_PLAIN_TYPES = {
    "FLOAT32": DataType.FLOAT32,
    "FLOAT16": DataType.FLOAT16,
    "FLOAT64": DataType.FLOAT64,
    "BFLOAT16": DataType.BFLOAT16,
    "BOOL": DataType.BOOLEAN,
    "INT8": DataType.SIGNED8,
    "INT16": DataType.SIGNED16,
    "INT32": DataType.SIGNED32,
    "INT64": DataType.SIGNED64,
    "UINT8": DataType.UNSIGNED8,
    "UINT16": DataType.UNSIGNED16,
    "UINT32": DataType.UNSIGNED32,
    "UINT64": DataType.UNSIGNED64,
    "INT4": DataType.SIGNED8,
    "INT2": DataType.SIGNED8,
    "STRING": DataType.STRING,
    "COMPLEX64": DataType.UNSIGNED64,
}
"""Types without a scale; `Tensor` describes the last two."""

_QUANTIZED_TYPES = {
    "INT4": DataType.QASYMM_S8,
    "INT2": DataType.QASYMM_S8,
    "INT8": DataType.QASYMM_S8,
    "UINT8": DataType.QASYMM_U8,
    "INT16": DataType.QSYMM_S16,
}

PACKED_BITS = {"INT4": 4, "INT2": 2}
"""Bits of an element of types whose elements share bytes."""

BLOCKWISE = "BlockwiseQuantization"
"""Table of a tensor whose blocks have scales of their own."""

_KEEP_SCALE = (DataType.SIGNED32, DataType.SIGNED64)
"""Plain types whose scale is kept, because a bias has one."""


def read_type(tensor: TableReader) -> str:
    """Name of a tensor's type in the schema; raises ParserError if armpy has no such type."""
    number = tensor.integer("Type")
    name = enumerators("TensorType").get(number, str(number))
    if name not in _PLAIN_TYPES:
        raise tensor.error("the tensor type is not supported", actual=name)
    return name


def read_element_type(
    tensor: TableReader,
    type_name: str,  # as `read_type` gives it
    shape: tuple[int, ...] | None,  # as in the file; None if its rank is not known
) -> tuple[DataType, Quantization | None]:
    """Data type and quantisation that a tensor's type and quantisation table stand for.

    Raises
    ------
    ParserError
        If the scales or zero points are unusable or do not go with the type and shape.
    """
    plain = _PLAIN_TYPES[type_name]
    table = tensor.table("Quantization")
    if table is None or not (type_name in _QUANTIZED_TYPES or plain in _KEEP_SCALE):
        return plain, None
    if table.union_kind("Details") == BLOCKWISE:
        return plain, None
    scales: list[float] = table.numbers("Scale")
    # For LiteRT a scale of 0 is none. Scales of integers without a quantised type are read if all
    # can be a bias's; other tensors may have anything there.
    is_unread = plain in _KEEP_SCALE and not all(0 < scale < math.inf for scale in scales)
    if is_unread or not any(scales):
        return plain, None
    zero_points: list[int] = table.numbers("ZeroPoint")
    if table.integer("DetailsType") != 0:
        raise tensor.error("custom quantisation is not supported")
    quantized = _QUANTIZED_TYPES.get(type_name, plain)
    axis = None
    if len(scales) > 1:
        axis = _checked_axis(tensor, table.integer("QuantizedDimension"), scales, shape)
        quantized = _per_axis_type(tensor, quantized)
    try:
        quantization = Quantization(tuple(scales), tuple(zero_points), axis)
        check_quantization(TensorInfo(shape, quantized, quantization), "")
    except InvalidArgumentError as error:
        raise tensor.error(error.failed, expected=error.expected, actual=error.actual) from error
    return quantized, quantization


def read_block_scales(tensor: TableReader) -> int | None:
    """Index of the tensor with a scale for each block of elements; None if there are no blocks.

    Raises
    ------
    ParserError
        If blocks have zero points, too.
    """
    table = tensor.table("Quantization")
    if table is None or table.union_kind("Details") != BLOCKWISE:
        return None
    blocks = table.union("Details", BLOCKWISE)
    if blocks.integer("ZeroPoints") > 0:
        raise tensor.error("zero points of blocks are not supported")
    return blocks.integer("Scales")


def _checked_axis(
    tensor: TableReader, axis: int, scales: Sequence[float], shape: tuple[int, ...] | None
) -> int:
    """The axis that several scales run along."""
    if shape == (len(scales),):
        return 0  # converters give a bias the axis of its weights
    if shape is None or not 0 <= axis < len(shape):
        raise tensor.error(
            "the scales run along an axis that does not exist",
            expected=f"an axis of {'an unknown shape' if shape is None else shape}",
            actual=str(axis),
        )
    if shape[axis] != len(scales):
        raise tensor.error(
            "the number of scales is wrong",
            expected=f"{shape[axis]}, the size of axis {axis}",
            actual=str(len(scales)),
        )
    return axis


def _per_axis_type(tensor: TableReader, quantized: DataType) -> DataType:
    """The symmetric type of a per-axis quantised tensor."""
    if quantized is DataType.QASYMM_S8:
        return DataType.QSYMM_S8
    if quantized is DataType.QASYMM_U8:
        raise tensor.error("UINT8 is not supported with several scales")
    return quantized
