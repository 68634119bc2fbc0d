"""Tensors of .armnn files: shapes, types, quantisation and stored elements."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

import numpy as np

from armpy import DataType, Quantization, TensorInfo
from armpy.ops.operation import Array
from armpy.plugins.hooks.flatbuffers import TableReader, table_errors
from armpy.tensor import Shape

DATA_TYPES: Mapping[int, DataType] = {
    0: DataType.FLOAT16,
    1: DataType.FLOAT32,
    2: DataType.QASYMM_U8,
    3: DataType.SIGNED32,
    4: DataType.BOOLEAN,
    5: DataType.QSYMM_S16,
    6: DataType.QASYMM_U8,
    7: DataType.QSYMM_S16,
    8: DataType.QASYMM_S8,
    9: DataType.QSYMM_S8,
    10: DataType.SIGNED64,
}
"""Data types by the format's numbers, two of which are of old files."""

NOT_SPECIFIED, SPECIFIED, SCALAR = range(3)
"""Numbers of ``dimensionality``."""

_UNSCALED = (0.0, 1.0)
"""Scales that writers put where there is none; 0 counts as 1."""


def tensor_info(table: TableReader | None, parent: TableReader) -> TensorInfo:
    """Shape, type and quantisation of a tensor.

    Parameters
    ----------
    table : TableReader or None
        A ``TensorInfo`` of the file.
    parent : TableReader
        The table that it belongs to, for messages.

    Raises
    ------
    ParserError
        If it is left out, or holds what no tensor can have.
    """
    if table is None:
        raise parent.error("the file does not describe a tensor of the layer")
    table.where = parent.where
    data_type = table.choice("dataType", DATA_TYPES, "DataType")
    with table_errors(parent):
        return TensorInfo(_shape(table), data_type, _quantization(table, data_type))


def output_infos(base: TableReader) -> list[TensorInfo]:
    """The tensors that a layer declares as its outputs, by the number of their slot.

    Raises
    ------
    ParserError
        If two slots have one number.
    """
    slots = base.tables("outputSlots", "output slot")
    infos: dict[int, TensorInfo] = {}
    for slot in slots:
        number = slot.integer("index")
        if number >= len(slots) or number in infos:
            raise base.error(
                "the output slots are numbered wrongly",
                expected=f"0 to {len(slots) - 1}, each once",
                actual=str(number),
            )
        infos[number] = tensor_info(slot.table("tensorInfo"), base)
    return [infos[number] for number in range(len(slots))]


def stored_tensor(
    table: TableReader | None, parent: TableReader, what: str
) -> tuple[Array, TensorInfo]:
    """The elements of a constant, and their description.

    Returns
    -------
    ndarray
        A read-only view of the file where its alignment allows that.
    TensorInfo
        Fully shaped.

    Raises
    ------
    ParserError
        If it is left out, or the file holds another number of elements than it says.
    """
    if table is None:
        raise parent.error(f"the {what} are missing")
    table.where = parent.where
    info = tensor_info(table.table("info"), parent)
    if not info.is_fully_shaped:
        raise parent.error(f"the shape of the {what} is not known")
    kind = table.union_kind("data")
    if not kind:
        raise parent.error(f"the file holds no elements of the {what}")
    stored = table.union("data", kind).vector("data")
    count = math.prod(info.known_shape)
    if stored.size != count or (count and stored.itemsize != info.data_type.size_bytes):
        raise parent.error(
            f"the file is damaged: the elements of the {what} do not fit their description",
            expected=f"{count} of {info.data_type.size_bytes} bytes",
            actual=f"{stored.size} of {stored.itemsize} bytes",
        )
    return typed_elements(stored, info, table), info


def typed_elements(stored: Array, info: TensorInfo, table: TableReader) -> Array:
    """The same bytes as elements of a type and shape; copied only where that is necessary."""
    if not stored.flags.aligned or sys.byteorder != "little":
        table.charge(stored.nbytes)
        stored = stored.astype(stored.dtype.newbyteorder("="))
    if info.data_type is DataType.BOOLEAN:
        table.charge(stored.nbytes)
        truth: Array = stored.view(np.uint8) != 0
        return truth.reshape(info.known_shape)
    if not stored.size:
        return np.zeros(info.known_shape, info.data_type.dtype)
    return stored.view(info.data_type.dtype).reshape(info.known_shape)


def _shape(table: TableReader) -> Shape | None:
    """The shape with None for a size that is not known; None for an unknown rank."""
    dimensionality = table.integer("dimensionality")
    if dimensionality == NOT_SPECIFIED:
        return None
    if dimensionality == SCALAR:
        return ()
    sizes: list[int] = table.numbers("dimensions")
    known: list[int] = table.numbers("dimensionSpecificity")
    if known and len(known) != len(sizes):
        raise table.error(
            "the numbers of dimensions and of their marks differ",
            expected=str(len(sizes)),
            actual=str(len(known)),
        )
    return tuple(size if not known or known[i] else None for i, size in enumerate(sizes))


def _quantization(table: TableReader, data_type: DataType) -> Quantization | None:
    """Scales and zero points, where the type has any."""
    is_integer = data_type is DataType.SIGNED32
    if not data_type.is_quantized and not is_integer:
        return None
    scales: list[float] = table.numbers("quantizationScales")
    if len(scales) > 1:
        return Quantization.per_axis(scales, table.integer("quantizationDim"))
    scale = scales[0] if scales else table.real("quantizationScale")
    offset = table.integer("quantizationOffset")
    if is_integer and scale in _UNSCALED and not offset:
        return None
    return Quantization.per_tensor(scale or 1.0, offset)
