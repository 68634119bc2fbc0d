"""Write small .tflite files for tests, including deliberately odd ones.

A `TfliteModel` collects buffers, subgraphs and signatures; a `Subgraph` collects tensors and
operators; `to_bytes` turns the whole into one flatbuffer. Names of operators, options tables,
fields and enumerators are those of the TFLite schema; option fields are spelled in snake case.

    model = TfliteModel()
    graph = model.subgraph("main")
    x = graph.tensor("x", (1, 4), "FLOAT32")
    y = graph.tensor("y", (2, 2), "FLOAT32")
    shape = graph.tensor("shape", (2,), "INT32", data=[2, 2])
    graph.operator("RESHAPE", [x, shape], [y], options={"new_shape": [2, 2]})
    graph.inputs(x)
    graph.outputs(y)
    file_bytes = model.to_bytes()

References
----------
TFLite schema 3c, as generated in the `tflite` package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from armpy_testing.models.tflite_tables import (
    BUFFER_ALIGNMENT_BYTES,
    Field,
    OptionValue,
    Table,
    checked_options,
    constant_bytes,
    enumerator,
    int32s,
    options_table_of,
    write,
)

__all__ = [
    "BUFFER_ALIGNMENT_BYTES",
    "LARGEST_DEPRECATED_CODE",
    "OptionValue",
    "SparseDimension",
    "Sparsity",
    "Subgraph",
    "Tensor",
    "TensorLike",
    "TfliteModel",
    "options_table_of",
]

LARGEST_DEPRECATED_CODE = 127


@dataclass(frozen=True, slots=True)
class SparseDimension:
    """How one dimension of a sparse tensor is stored."""

    dense_size: int = 0  # size of a dense dimension; ignored when `segments` is given
    # Row pointers and column indices of a compressed (SPARSE_CSR) dimension
    segments: tuple[int, ...] | None = None
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The sparsity table of a tensor."""

    traversal_order: tuple[int, ...]
    dimensions: tuple[SparseDimension, ...]
    block_map: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a subgraph, as `Subgraph.tensor` returns it."""

    subgraph: int
    index: int


# A raw index may stand for a tensor, so that files can point outside their tensor list.
TensorLike = Tensor | int


@dataclass(frozen=True, slots=True)
class _ExternalBuffer:
    """Bytes to store after the flatbuffer."""

    data: bytes


@dataclass(frozen=True, slots=True)
class _OperatorCode:
    code: int
    version: int
    custom_code: str | None
    legacy: bool


@dataclass(slots=True)
class Subgraph:
    """One subgraph of a `TfliteModel`; made by `TfliteModel.subgraph`."""

    model: "TfliteModel"
    index: int
    name: str | None
    _tensors: list[Table] = field(default_factory=list)
    _operators: list[Table] = field(default_factory=list)
    _inputs: tuple[int, ...] = ()
    _outputs: tuple[int, ...] = ()

    def tensor(
        self,
        name: str | None,
        shape: Sequence[int] | None,
        type: str | int = "FLOAT32",
        *,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] | None = None,
        axis: int = 0,
        data: npt.ArrayLike | bytes | None = None,
        buffer: int | None = None,
        variable: bool = False,
        shape_signature: Sequence[int] | None = None,
        sparsity: Sparsity | None = None,
    ) -> Tensor:
        """Add a tensor.

        `name`: None leaves the name out of the file.
        `shape`: None writes an empty shape and `has_rank = false`, as TensorFlow does.
        `type`: name in the schema's TensorType, or any number for a type that does not exist.
        `scale`: one value for quantisation per tensor, several for quantisation per channel.
        `zero_point`: one value serves every channel; zero when omitted; an empty sequence leaves
        the vector out.
        `axis`: channel dimension of quantisation per channel.
        `data`: value of a constant, written to a buffer of its own. Packed types such as INT4 and
        STRING take bytes.
        `buffer`: index of an existing buffer, to share or to be wrong about. Without `data` or
        `buffer` the tensor uses buffer 0, the empty one.
        `variable`: whether the tensor keeps its value between invocations.
        `shape_signature`: the shape with -1 for unknown dimensions.
        `sparsity`: written as given, without a check against `data`.
        Raises ValueError if both `data` and `buffer` are given, `type` is not in the schema, or
        `data` does not fit `type`.
        """
        if data is not None and buffer is not None:
            raise ValueError(f"tensor {name!r}: give data or buffer, not both")
        type_code = enumerator(tflite.TensorType, type)
        if data is not None:
            buffer = self.model.buffer(constant_bytes(data, type_code))
        fields: dict[str, Field] = {
            "Name": name,
            "Shape": int32s(shape or ()),
            "ShapeSignature": int32s(shape_signature),
            "Type": type_code,
            "Buffer": buffer or 0,
            "Quantization": _quantization(scale, zero_point, axis),
            "IsVariable": variable,
            "Sparsity": _sparsity(sparsity),
            "HasRank": shape is not None,
        }
        self._tensors.append(Table("Tensor", fields))
        return Tensor(self.index, len(self._tensors) - 1)

    def operator(
        self,
        code: str | int,
        inputs: Sequence[TensorLike | None],
        outputs: Sequence[TensorLike],
        options: Mapping[str, OptionValue] | None = None,
        *,
        version: int = 1,
        intermediates: Sequence[TensorLike] = (),
        custom_code: str | None = None,
        custom_options: bytes | None = None,
        options_table: str | None = None,
        legacy_code: bool = False,
    ) -> None:
        """Add an operator; operators run in the order they are added.

        `code`: name in the schema's BuiltinOperator, or any number for an operator that does not
        exist.
        `inputs`: None is an omitted optional input, written as -1.
        `options`: fields of the options table in snake case; enumerators by name or number. An
        empty mapping writes the table with its defaults; None writes no table.
        `version`: version of the operator.
        `intermediates`: intermediate tensors, as the quantised LSTM has.
        `custom_code`, `custom_options`: name and options of a custom operator; `code` is then
        "CUSTOM".
        `options_table`: table to use in place of the operator's own, for example "AddOptions".
        `legacy_code`: write only `deprecated_builtin_code`, as files did before schema 3a.
        Raises ValueError if `code`, an option or an enumerator is not in the schema, an option's
        values do not fit its vector, or the operator has no options table.
        """
        operator_code = _OperatorCode(
            enumerator(tflite.BuiltinOperator, code), version, custom_code, legacy_code
        )
        fields: dict[str, Field] = {
            "OpcodeIndex": self.model.operator_code_index(operator_code),
            "Inputs": int32s(_indices(inputs)),
            "Outputs": int32s(_indices(outputs)),
            "Intermediates": int32s(_indices(intermediates)) if intermediates else None,
            "CustomOptions": custom_options,
        }
        if options is not None:
            table = options_table or options_table_of(operator_code.code)
            union = "BuiltinOptions" if hasattr(tflite.BuiltinOptions, table) else "BuiltinOptions2"
            fields[f"{union}Type"] = getattr(getattr(tflite, union), table)
            fields[union] = checked_options(table, options)
        self._operators.append(Table("Operator", fields))

    def inputs(self, *tensors: TensorLike) -> None:
        """Set the inputs of the subgraph."""
        self._inputs = _indices(tensors)

    def outputs(self, *tensors: TensorLike) -> None:
        """Set the outputs of the subgraph."""
        self._outputs = _indices(tensors)

    def table(self) -> Table:
        """Return the subgraph as a table of the schema."""
        fields: dict[str, Field] = {
            "Tensors": self._tensors,
            "Inputs": int32s(self._inputs),
            "Outputs": int32s(self._outputs),
            "Operators": self._operators,
            "Name": self.name,
        }
        return Table("SubGraph", fields)


@dataclass(slots=True)
class TfliteModel:
    """A model file under construction."""

    version: int = 3  # version of the schema; readers accept 3 only
    description: str = "armpy test model"  # free text
    identifier: bytes | None = b"TFL3"  # file identifier of four bytes; None writes none
    subgraphs: list[Subgraph] = field(default_factory=list)
    _buffers: list[Table | _ExternalBuffer] = field(default_factory=lambda: [Table("Buffer", {})])
    _codes: list[_OperatorCode] = field(default_factory=list)
    _signatures: list[Table] = field(default_factory=list)
    _metadata: list[Table] = field(default_factory=list)

    def subgraph(self, name: str | None = "main") -> Subgraph:
        """Add a subgraph; the first one is the main one."""
        subgraph = Subgraph(self, len(self.subgraphs), name)
        self.subgraphs.append(subgraph)
        return subgraph

    def buffer(self, data: bytes, *, external: bool = False) -> int:
        """Add a buffer and return its index.

        `external`: store the bytes after the flatbuffer, found by the buffer's offset and size
        fields, as files over 2 GB do.
        """
        self._buffers.append(_ExternalBuffer(data) if external else Table("Buffer", {"Data": data}))
        return len(self._buffers) - 1

    def external_buffer(self, offset_bytes: int, size_bytes: int) -> int:
        """Add a buffer with the given offset and size, right or wrong, and return its index."""
        self._buffers.append(Table("Buffer", {"Offset": offset_bytes, "Size": size_bytes}))
        return len(self._buffers) - 1

    def signature(
        self, key: str, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
    ) -> None:
        """Add a signature over the subgraph that its tensors belong to.

        Raises ValueError if the tensors are not all of one subgraph, or there are none.
        """
        subgraphs = {tensor.subgraph for tensor in (*inputs.values(), *outputs.values())}
        if len(subgraphs) != 1:
            raise ValueError(
                f"signature {key!r}: expected tensors of one subgraph; "
                f"got subgraphs {sorted(subgraphs)}"
            )
        fields: dict[str, Field] = {
            "Inputs": _tensor_maps(inputs),
            "Outputs": _tensor_maps(outputs),
            "SignatureKey": key,
            "SubgraphIndex": subgraphs.pop(),
        }
        self._signatures.append(Table("SignatureDef", fields))

    def metadata(self, name: str, content: bytes) -> None:
        """Add metadata of a name, in a buffer of its own."""
        self._metadata.append(Table("Metadata", {"Name": name, "Buffer": self.buffer(content)}))

    def operator_code_index(self, code: _OperatorCode) -> int:
        """Return the index of `code` in the model's list, adding it when it is new."""
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def to_bytes(self) -> bytes:
        """Return the file: the flatbuffer, then the external buffers, each aligned to 16 bytes."""
        externals = [buffer.data for buffer in self._buffers if isinstance(buffer, _ExternalBuffer)]
        if not externals:
            return self._flatbuffer([])
        # The flatbuffer's length does not depend on the offsets' values: any offsets give it.
        end_bytes = len(self._flatbuffer([1] * len(externals)))
        offsets: list[int] = []
        for data in externals:
            offsets.append(-(-end_bytes // BUFFER_ALIGNMENT_BYTES) * BUFFER_ALIGNMENT_BYTES)
            end_bytes = offsets[-1] + len(data)
        file = bytearray(self._flatbuffer(offsets))
        for offset, data in zip(offsets, externals, strict=True):
            file.extend(bytes(offset - len(file)) + data)
        return bytes(file)

    def _flatbuffer(self, external_offsets: Sequence[int]) -> bytes:
        """Return the flatbuffer with the given offsets, one for each external buffer."""
        remaining = iter(external_offsets)
        buffers = [
            Table("Buffer", {"Offset": next(remaining), "Size": len(buffer.data)})
            if isinstance(buffer, _ExternalBuffer)
            else buffer
            for buffer in self._buffers
        ]
        fields: dict[str, Field] = {
            "Version": self.version,
            "OperatorCodes": [_operator_code(code) for code in self._codes],
            "Subgraphs": [subgraph.table() for subgraph in self.subgraphs],
            "Description": self.description,
            "Buffers": buffers,
            "Metadata": self._metadata or None,
            "SignatureDefs": self._signatures or None,
        }
        builder = flatbuffers.Builder(1024)
        builder.Finish(write(builder, Table("Model", fields)), self.identifier)
        return bytes(builder.Output())


def model_with_input(
    shape: Sequence[int] | None = (2,), type: str | int = "FLOAT32", name: str = "x", **more: Any
) -> tuple[TfliteModel, Subgraph, Tensor]:
    """A model with one input, and its main subgraph; parameters as of `Subgraph.tensor`."""
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor(name, shape, type, **more)
    graph.inputs(x)
    return model, graph, x


def _quantization(
    scale: float | Sequence[float] | None, zero_point: int | Sequence[int] | None, axis: int
) -> Table | None:
    """Return the quantisation of a tensor, if any, with a zero point per scale unless listed."""
    if scale is None:
        return None
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    if zero_point is None or isinstance(zero_point, int):
        zero_point = [zero_point or 0] * len(scales)
    zero_points = np.asarray(zero_point, np.int64) if len(zero_point) else None
    return Table(
        "QuantizationParameters",
        {"Scale": scales, "ZeroPoint": zero_points, "QuantizedDimension": axis},
    )


def _sparsity(sparsity: Sparsity | None) -> Table | None:
    """Return the sparsity of a tensor, if it has any."""
    if sparsity is None:
        return None
    fields: dict[str, Field] = {
        "TraversalOrder": int32s(sparsity.traversal_order),
        "BlockMap": int32s(sparsity.block_map) if sparsity.block_map else None,
        "DimMetadata": [_sparse_dimension(dimension) for dimension in sparsity.dimensions],
    }
    return Table("SparsityParameters", fields)


def _sparse_dimension(dimension: SparseDimension) -> Table:
    """Return one dimension of a sparsity table."""
    if dimension.segments is None:
        dense: dict[str, Field] = {
            "Format": tflite.DimensionType.DENSE,
            "DenseSize": dimension.dense_size,
        }
        return Table("DimensionMetadata", dense)
    fields: dict[str, Field] = {
        "Format": tflite.DimensionType.SPARSE_CSR,
        "ArraySegmentsType": tflite.SparseIndexVector.Int32Vector,
        "ArraySegments": Table("Int32Vector", {"Values": int32s(dimension.segments)}),
        "ArrayIndicesType": tflite.SparseIndexVector.Int32Vector,
        "ArrayIndices": Table("Int32Vector", {"Values": int32s(dimension.indices)}),
    }
    return Table("DimensionMetadata", fields)


def _operator_code(code: _OperatorCode) -> Table:
    """Return one operator code under the rule for codes above 127."""
    fields: dict[str, Field] = {
        "DeprecatedBuiltinCode": min(code.code, LARGEST_DEPRECATED_CODE),
        "CustomCode": code.custom_code,
        "Version": code.version,
        "BuiltinCode": None if code.legacy else code.code,
    }
    return Table("OperatorCode", fields)


def _tensor_maps(tensors: Mapping[str, Tensor]) -> list[Table]:
    """Return the names that a signature gives to tensors."""
    return [
        Table("TensorMap", {"Name": name, "TensorIndex": tensor.index})
        for name, tensor in tensors.items()
    ]


def _indices(tensors: Sequence[TensorLike | None]) -> tuple[int, ...]:
    """Return the tensors' indexes, -1 for an omitted one."""
    return tuple(
        -1 if tensor is None else tensor if isinstance(tensor, int) else tensor.index
        for tensor in tensors
    )
