"""Records of a .tflite file as callers see it: tensors, operators and signatures by index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.frontends.tflite.quantization import BLOCKWISE, PACKED_BITS
from armpy.frontends.tflite.reader import read_model
from armpy.frontends.tflite.signatures import read_signatures
from armpy.frontends.tflite.subgraphs import Subgraphs
from armpy.frontends.tflite.tensors import stored_bytes, unpacked
from armpy.ops.operation import Array
from armpy.plugins.hooks.flatbuffers import TableReader, Tables
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES

StoredBytes: TypeAlias = "Callable[[TableReader], npt.NDArray[np.uint8]]"
Sparsity: TypeAlias = dict[str, Any]  # Any: arrays and lists, as callers of LiteRT get them

NUMPY_TYPES: dict[str, type[np.generic]] = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
    "STRING": np.bytes_,
    **dict.fromkeys(PACKED_BITS, np.int8),
    "RESOURCE": np.object_,
    "VARIANT": np.object_,
}
"""Element types that LiteRT reports, by the schema's name of the type."""

_DENSE = 0
_EMPTY = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a subgraph, as the file states it."""

    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    """Shape with -1 for dimensions that callers choose; empty if the file leaves it out."""
    type_name: str
    """Type in the schema's words: ``FLOAT32``, ``STRING``."""
    scales: npt.NDArray[np.float32 | np.float16]
    zero_points: npt.NDArray[np.int32]
    quantized_dimension: int
    block_size: int
    """Elements of a row that share a scale; 0 where not parts of rows have scales."""
    sparsity: Sparsity
    stored: npt.NDArray[np.uint8]
    """The bytes of a constant; empty for other tensors."""
    is_variable: bool

    @property
    def dtype(self) -> type[np.generic] | None:
        """NumPy's type of an element; None if there is none."""
        return NUMPY_TYPES.get(self.type_name)

    @property
    def per_tensor_quantization(self) -> tuple[float, int]:
        """Scale and zero point; (0.0, 0) unless there is one of each."""
        if len(self.scales) == 1 and len(self.zero_points) == 1:
            return float(self.scales[0]), int(self.zero_points[0])
        return 0.0, 0

    def constant(self) -> Array:
        """The elements of a constant; of a sparse one, those that are stored."""
        if self.type_name in PACKED_BITS:
            numbers = unpacked(self.stored, PACKED_BITS[self.type_name])
            return numbers[: np.prod(self.shape, dtype=int)].reshape(self.shape)
        elements = self.stored.view(np.dtype(self.dtype).newbyteorder("<"))
        return elements.copy() if self.sparsity else elements.reshape(self.shape).copy()


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """One operator of a subgraph, with indexes of tensors; -1 for an operand left out."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SubgraphEntry:
    """One subgraph, as the file states it."""

    tensors: tuple[TensorEntry, ...]
    operators: tuple[OperatorEntry, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SignatureEntry:
    """One signature: the subgraph that it calls, and tensor indexes by name, sorted by name."""

    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Subgraphs by index, and signatures in the order of the file."""

    subgraphs: tuple[SubgraphEntry, ...]
    signatures: Mapping[str, SignatureEntry]


def read_file(data: memoryview) -> FileRecord:
    """Read a .tflite file.

    Raises
    ------
    ValueError
        If the bytes are not a sound .tflite file, with LiteRT's text.
    """
    try:
        model = read_model(data)
        subgraphs = Subgraphs(model, DEFAULT_MEMORY_LIMIT_BYTES)
        stored = partial(stored_bytes, model.tables("Buffers", "buffer"))
        count = len(model.tables("Subgraphs", "subgraph"))
        read = tuple(_subgraph(subgraphs, index, stored) for index in range(count))
        signatures = {
            name: SignatureEntry(
                signature.subgraph, _sorted(signature.inputs), _sorted(signature.outputs)
            )
            for name, signature in read_signatures(model).items()
        }
    except ArmpyError as error:
        raise ValueError(f"The model is not a valid Flatbuffer buffer: {error}") from error
    return FileRecord(read, signatures)


def _sorted(names: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(names.items()))


def _subgraph(subgraphs: Subgraphs, index: int, stored: StoredBytes) -> SubgraphEntry:
    """One subgraph with its tensors and operators."""
    table = subgraphs[index]
    tables = table.tables("Tensors", "tensor")
    tensors = tuple(_tensor(tensor, stored, tables) for tensor in tables)
    operators = tuple(
        OperatorEntry(
            operator.name.removeprefix("custom '").removesuffix("'"),
            tuple(operator.table.numbers("Inputs")),
            tuple(operator.table.numbers("Outputs")),
        )
        for operator in subgraphs.operators(index)
    )
    inputs, outputs = (tuple(table.numbers(field)) for field in ("Inputs", "Outputs"))
    for tensor in (*inputs, *outputs):
        if not 0 <= tensor < len(tensors):
            raise table.error(f"there is no tensor {tensor}")
    return SubgraphEntry(tensors, operators, inputs, outputs)


def _tensor(table: TableReader, stored: StoredBytes, tables: Tables) -> TensorEntry:
    """One tensor of those of a subgraph."""
    number = table.integer("Type")
    quantization = table.table("Quantization")
    scales, zero_points, dimension = _EMPTY.astype(np.float32), _EMPTY.astype(np.int32), 0
    block_size = 0
    if quantization is not None and quantization.union_kind("Details") == BLOCKWISE:
        blocks = quantization.union("Details", BLOCKWISE)
        block_size = blocks.integer("BlockSize")
        halves = stored(tables[blocks.integer("Scales")])
        scales = halves[: halves.size // 2 * 2].view(np.float16)
    if quantization is not None and quantization.vector("Scale").size:
        scales = quantization.vector("Scale").astype(np.float32)
        zero_points = quantization.vector("ZeroPoint").astype(np.int32)
        if not zero_points.size:
            zero_points = np.zeros(scales.shape, np.int32)
        dimension = quantization.integer("QuantizedDimension")
    sparsity = table.table("Sparsity")
    return TensorEntry(
        table.text("Name"),
        tuple(table.numbers("Shape")),
        tuple(table.numbers("ShapeSignature")),
        table.schema.enumerators("TensorType").get(number, f"type {number}"),
        scales,
        zero_points,
        dimension,
        block_size,
        {} if sparsity is None else _sparsity(sparsity),
        stored(table),
        table.flag("IsVariable"),
    )


def _sparsity(table: TableReader) -> Sparsity:
    """Places of a sparse tensor's elements, in LiteRT's form."""
    dimensions: list[Sparsity] = []
    for dimension in table.tables("DimMetadata", "dimension"):
        if dimension.integer("Format") == _DENSE:
            dimensions.append({"format": 0, "dense_size": dimension.integer("DenseSize")})
        else:
            segments, indices = (
                dimension.union(field, dimension.union_kind(field)).vector("Values")
                for field in ("ArraySegments", "ArrayIndices")
            )
            dimensions.append(
                {
                    "format": 1,
                    "array_segments": segments.astype(np.int32),
                    "array_indices": indices.astype(np.int32),
                }
            )
    return {
        "traversal_order": table.vector("TraversalOrder").astype(np.int32),
        "block_map": table.vector("BlockMap").astype(np.int32),
        "dim_metadata": dimensions,
    }
