"""The tensors of a subgraph, each read once and checked when it is first asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader, Tables
from armpy.errors import InvalidArgumentError
from armpy.frontends.tflite.quantization import (
    PACKED_BITS,
    read_block_scales,
    read_element_type,
    read_type,
)
from armpy.ops.operation import Array
from armpy.tensor import MAX_RANK, Quantization, Shape, TensorInfo, format_shape, shapes_agree
from armpy.types import DataType

_DENSE_PER_CHARGE = 64
"""Factor by which a sparse constant may be larger than what its file pays for with its own size."""

_FIRST_EXTERNAL_OFFSET = 2  # 0 and 1 say that the data is inside the flatbuffer


@dataclass(frozen=True, slots=True)
class Tensor:
    """Tensor as the file states it."""

    name: str  # empty if the file has none
    shape: tuple[int, ...] | None  # as the file was written for; None if the rank is not known
    type_name: str  # in the schema
    data_type: DataType
    quantization: Quantization | None
    is_variable: bool
    table: TableReader  # for messages and later reads
    block_scales: int | None  # index of the tensor with the scales of blocks, if there are blocks

    @property
    def packed_bits(self) -> int:
        """Bits of an element, where several share a byte; else 0."""
        return PACKED_BITS.get(self.type_name, 0)

    @property
    def is_complex(self) -> bool:
        """Whether `data_type` stands for complex numbers by their bits."""
        return self.type_name == "COMPLEX64"

    def input_info(self) -> TensorInfo:
        """Type, quantisation, and the shape with None for dimensions that callers may choose."""
        signature = self.shape_signature()
        shape = self.shape if signature is None else signature
        return TensorInfo(shape, self.data_type, self.quantization)

    def shape_signature(self) -> Shape | None:
        """The shape with None for open dimensions; None if the file has none that can be meant.

        LiteRT runs the tensor's shape, and does not look at one that contradicts it.
        """
        dims: list[int] = self.table.numbers("ShapeSignature")
        signature = tuple(None if dim == -1 else dim for dim in dims)
        return signature if signature and shapes_agree(signature, self.shape) else None

    @property
    def inferred_info(self) -> TensorInfo:
        """Type and quantisation without the shape, which operators say better."""
        return TensorInfo(None, self.data_type, self.quantization)

    @property
    def known_shape(self) -> tuple[int, ...]:
        """The shape; that of a scalar if the file has none."""
        return self.shape or ()

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor's elements in the file."""
        count = math.prod(self.known_shape)
        bits = self.packed_bits
        return (count * bits + 7) // 8 if bits else count * self.data_type.size_bytes


class Tensors:
    """The tensors of one subgraph by index."""

    def __init__(
        self,
        tensors: Tables,
        buffers: Tables,
        memory_limit_bytes: int,  # how much one tensor may take up
    ) -> None:
        self._tables = tensors
        self._buffers = buffers
        self._memory_limit_bytes = memory_limit_bytes
        self._read: dict[int, Tensor] = {}

    def __getitem__(self, index: int) -> Tensor:
        tensor = self._read.get(index)
        if tensor is None:
            tensor = self._read[index] = _read_tensor(self._tables[index], index)
            self.check_size(tensor.table, tensor.inferred_info.with_shape(tensor.shape))
        return tensor

    def set_type(self, index: int, type_name: str) -> None:
        """Give a tensor another type than the file does, with the scale that the file has."""
        tensor = self[index]
        data_type, quantization = read_element_type(tensor.table, type_name, tensor.shape)
        self._read[index] = replace(
            tensor, type_name=type_name, data_type=data_type, quantization=quantization
        )

    def check_size(self, table: TableReader, info: TensorInfo) -> None:
        """Check a tensor's size, as far as it is known, against the memory limit.

        Raises
        ------
        ParserError
            If it is above the limit. Dimensions of 0 do not count: NumPy refuses shapes whose
            other dimensions are too large.
        """
        extent = math.prod(dim or 1 for dim in info.shape or ())
        if extent * info.data_type.size_bytes > self._memory_limit_bytes:
            raise table.error(
                "the tensor is larger than the memory limit",
                expected=f"at most {self._memory_limit_bytes} bytes",
                actual=f"{extent * info.data_type.size_bytes} bytes for {info.data_type.dtype} "
                f"{format_shape(info.shape)}",
                fix="Raise memory_limit_bytes if you trust the model",
            )

    def constant(self, tensor: Tensor) -> Array | None:
        """The elements of a constant.

        Bytes after the elements are padding, as LiteRT takes them.

        Returns a read-only view of the file where its alignment allows that. None if the file holds
        no elements for the tensor.

        Raises
        ------
        ParserError
            If the file holds fewer bytes than the shape says, or in a form that is not supported.
        """
        table = tensor.table
        stored = stored_bytes(self._buffers, table)
        if not stored.size and tensor.size_bytes:
            return None
        if tensor.data_type.is_string:
            return _strings(tensor, stored)
        sparsity = table.table("Sparsity")
        if sparsity is not None:
            return _dense_elements(tensor, sparsity, stored)
        if stored.size < tensor.size_bytes:
            raise table.error(
                "the constant is too short",
                expected=f"{tensor.size_bytes} bytes for {format_shape(tensor.shape)}",
                actual=str(stored.size),
            )
        return _as_elements(tensor, stored[: tensor.size_bytes])


def stored_bytes(buffers: Tables, table: TableReader) -> npt.NDArray[np.uint8]:
    """The bytes of the buffer that a tensor, or metadata, names."""
    buffer = buffers[table.integer("Buffer")]
    stored = buffer.vector("Data")
    if not stored.size and (offset := buffer.integer("Offset")) >= _FIRST_EXTERNAL_OFFSET:
        return buffer.external_data(offset, buffer.integer("Size"))
    return stored


def check_external_data(buffers: Tables) -> None:
    """Check that the file holds all bytes after its flatbuffer, also of buffers without use.

    Raises
    ------
    ParserError
        If the file ends before the bytes of a buffer do.
    """
    for buffer in buffers:
        if (offset := buffer.integer("Offset")) >= _FIRST_EXTERNAL_OFFSET:
            buffer.external_data(offset, buffer.integer("Size"))


def _read_tensor(table: TableReader, index: int) -> Tensor:
    """Read all that a file says of a tensor, but for its elements."""
    name = table.text("Name")
    if name:
        table.where = f"tensor {index} '{name}'"
    shape = _read_shape(table)
    type_name = read_type(table)
    data_type, quantization = read_element_type(table, type_name, shape)
    return Tensor(
        name,
        shape,
        type_name,
        data_type,
        quantization,
        table.flag("IsVariable"),
        table,
        read_block_scales(table),
    )


def _read_shape(table: TableReader) -> tuple[int, ...] | None:
    """A tensor's shape; None if its rank is not known, or it is a scalar of an old file."""
    dims: list[int] = table.numbers("Shape")
    if not dims and not table.flag("HasRank"):
        return None
    if len(dims) > MAX_RANK:
        raise table.error(
            "the rank is too high", expected=f"at most {MAX_RANK}", actual=str(len(dims))
        )
    if any(dim < 0 for dim in dims):
        raise table.error("a dimension is negative", actual=str(tuple(dims)))
    return tuple(dims)


def _as_elements(tensor: Tensor, stored: npt.NDArray[np.uint8]) -> Array:
    """Bytes of a constant as elements, without a copy where that is possible."""
    if tensor.packed_bits:
        count = math.prod(tensor.known_shape)
        tensor.table.charge(2 * count)
        return unpacked(stored, tensor.packed_bits)[:count].reshape(tensor.known_shape)
    little = tensor.data_type.dtype.newbyteorder("<")
    if tensor.data_type is DataType.BOOLEAN:
        stored = _as_booleans(tensor, stored)
    elements: npt.NDArray[Any] = stored.view(little).reshape(tensor.known_shape)  # Any: as Array
    if elements.flags.aligned and elements.dtype.isnative:
        return elements
    tensor.table.charge(stored.size)
    return elements.astype(tensor.data_type.dtype)


def _strings(tensor: Tensor, stored: npt.NDArray[np.uint8]) -> Array:
    """Strings of a constant, which take more memory than their bytes."""
    tensor.table.charge(4 * stored.size)
    count = math.prod(tensor.known_shape)
    if not count:
        return np.empty(tensor.known_shape, object)
    try:
        from armpy.core.strings import unpacked  # noqa: PLC0415 - few networks have strings

        strings = unpacked(stored, count)
    except InvalidArgumentError as error:
        raise tensor.table.error(
            error.failed, expected=error.expected, actual=error.actual
        ) from error
    return strings.reshape(tensor.known_shape)


def _dense_elements(tensor: Tensor, sparsity: TableReader, stored: npt.NDArray[np.uint8]) -> Array:
    """All elements of a constant that is stored sparsely."""
    # Few files have any.
    from armpy.frontends.tflite.sparsity import densified  # noqa: PLC0415

    size = tensor.data_type.size_bytes
    if tensor.packed_bits or stored.size % size:
        raise tensor.table.error("sparse elements of this type or size are not supported")
    tensor.table.charge(tensor.size_bytes // _DENSE_PER_CHARGE)
    elements = stored.view(tensor.data_type.dtype.newbyteorder("<"))
    native = elements.astype(tensor.data_type.dtype, copy=False)
    return densified(tensor.table, sparsity, tensor.known_shape, native)


def unpacked(stored: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.int8]:
    """Elements of 4 or 2 bits, of which the one in the lowest bits of a byte comes first."""
    bits_above = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    at_top = np.left_shift(stored[:, np.newaxis], bits_above).view(np.int8)
    elements: npt.NDArray[np.int8] = np.right_shift(at_top, 8 - bits)
    return elements.reshape(-1)


def _as_booleans(tensor: Tensor, stored: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Bytes of a constant with 1 for all but 0, as NumPy takes for granted that they are."""
    tensor.table.charge(stored.size)
    if stored.max(initial=0) <= 1:
        return stored
    tensor.table.charge(stored.size)
    truths: npt.NDArray[np.uint8] = stored.astype(np.bool_).view(np.uint8)
    return truths
