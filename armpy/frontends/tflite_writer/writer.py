"""Collects what becomes one subgraph of a .tflite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.flatbuffers.writer import Field, FlatTable, write_flatbuffer
from armpy.errors import UnimplementedError
from armpy.frontends.tflite.reader import TFLITE_SCHEMA
from armpy.graph import Layer, Value
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

IDENTIFIER = b"TFL3"
_LARGEST_OLD_CODE = 127
LARGEST_COPIED_BYTES = 1024
"""Most bytes of a constant that is in the file even if others are shared."""

_TYPES = {
    DataType.FLOAT32: "FLOAT32",
    DataType.FLOAT16: "FLOAT16",
    DataType.FLOAT64: "FLOAT64",
    DataType.BOOLEAN: "BOOL",
    DataType.SIGNED8: "INT8",
    DataType.SIGNED16: "INT16",
    DataType.SIGNED32: "INT32",
    DataType.SIGNED64: "INT64",
    DataType.UNSIGNED8: "UINT8",
    DataType.UNSIGNED16: "UINT16",
    DataType.UNSIGNED32: "UINT32",
    DataType.UNSIGNED64: "UINT64",
    DataType.QASYMM_S8: "INT8",
    DataType.QSYMM_S8: "INT8",
    DataType.QASYMM_U8: "UINT8",
    DataType.QSYMM_S16: "INT16",
}
_CODES = TFLITE_SCHEMA.enumerations["BuiltinOperator"].split()
_TENSOR_TYPES = TFLITE_SCHEMA.enumerations["TensorType"].split()
_TYPE_NUMBERS = {data_type: _TENSOR_TYPES.index(name) for data_type, name in _TYPES.items()}


class TfliteWriter:
    """Collects the tensors and operators of one subgraph.

    Parameters
    ----------
    has_names : bool
        Whether tensors, inputs and outputs are named in the file; if not, equal tensors are one
        table of it.
    shares_constants : bool
        Whether the file has empty buffers instead of constants of more than `LARGEST_COPIED_BYTES`.

    Attributes
    ----------
    shared : dict of int to ndarray
        The elements of the empty buffers, by their number; not copied where they are contiguous.
    """

    def __init__(self, *, has_names: bool = True, shares_constants: bool = False) -> None:
        self._has_names = has_names
        self._shares_constants = shares_constants
        self.shared: dict[int, Array] = {}
        self._tensors: list[FlatTable] = []
        self._operators: list[FlatTable] = []
        self._buffers: list[FlatTable] = [FlatTable("Buffer", {})]
        self._codes: dict[tuple[str, int], int] = {}
        self._known: dict[Value, int] = {}
        self._names: dict[str, int] = {}
        self._contents: dict[bytes, int] = {}
        self._nameless: dict[TensorInfo, FlatTable] = {}

    def value(self, value: Value | None, name: str = "") -> int:
        """Index of a value's tensor, which is added if there is none; -1 for None."""
        if value is None:
            return -1
        if value not in self._known:
            self._known[value] = self.tensor(name or value.name, value.info, value.data)
        return self._known[value]

    def tensor(self, name: str, info: TensorInfo, data: Array | None = None) -> int:
        """Add a tensor; its index.

        Raises
        ------
        UnimplementedError
            If the format has no such type.
        """
        table = None if self._has_names or data is not None else self._nameless.get(info)
        if table is None:
            table = self._table(name, info, data)
            if data is None:
                self._nameless[info] = table
        self._tensors.append(table)
        return len(self._tensors) - 1

    def _table(self, name: str, info: TensorInfo, data: Array | None) -> FlatTable:
        """The table of a tensor; errors as of `tensor`."""
        data_type, scales = info.data_type, info.quantization
        several = " with several scales" if scales and scales.axis is not None else ""
        if data_type not in _TYPES or (several and data_type is DataType.QASYMM_U8):
            raise UnimplementedError(
                f"the format has no type {data_type.name}{several}", where=f"tensor '{name}'"
            )
        fields: dict[str, Field] = {
            "Type": _TYPE_NUMBERS[data_type],
            "HasRank": info.shape is not None,
        }
        if self._has_names:
            fields["Name"] = self._unique(name)
        if info.shape is not None:
            fields["Shape"] = np.array(
                [size or 0 if data is not None else _size(size) for size in info.shape], np.int32
            )
            if None in info.shape:
                signature = [-1 if size is None else size for size in info.shape]
                fields["ShapeSignature"] = np.array(signature, np.int32)
        if scales is not None:
            fields["Quantization"] = _quantization(scales)
        if data is not None:
            fields["Buffer"] = self._buffer(data)
        return FlatTable("Tensor", fields)

    def integers(self, numbers: Sequence[int] | npt.NDArray[np.integer] | int, name: str) -> int:
        """Add a constant of int32; its index."""
        array = np.asarray(numbers, np.int32)
        return self.tensor(name, TensorInfo(array.shape, DataType.SIGNED32), array)

    def operator(
        self,
        code: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: tuple[str, Mapping[str, Field]] | None = None,
        version: int = 1,
    ) -> None:
        """Add an operator.

        Parameters
        ----------
        code : str
            Its name in the schema.
        inputs, outputs : sequence of int
            Indexes of tensors.
        options : (str, mapping), optional
            Name of the table, and its fields.
        """
        key = code, version
        fields: dict[str, Field] = {
            "OpcodeIndex": self._codes.setdefault(key, len(self._codes)),
            "Inputs": np.array(inputs, np.int32),
            "Outputs": np.array(outputs, np.int32),
        }
        if options is not None:
            fields["BuiltinOptions"] = FlatTable(*options)
        self._operators.append(FlatTable("Operator", fields))

    @property
    def num_operators(self) -> int:
        """Number of operators."""
        return len(self._operators)

    def remove_operators(self, first: int) -> None:
        """Remove the operators from one on."""
        del self._operators[first:]

    def file(
        self,
        inputs: Mapping[str, int],
        outputs: Mapping[str, int],
        about: str,
        metadata: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """The file's contents.

        Parameters
        ----------
        inputs, outputs : mapping of str to int
            Tensors by name.
        about : str
            A description.
        metadata : mapping of str to bytes, optional
            Other data of the file, by name.
        """
        described = [
            FlatTable("Metadata", {"Name": name, "Buffer": self._content_buffer(content)})
            for name, content in (metadata or {}).items()
        ]
        subgraph = FlatTable(
            "SubGraph",
            {
                "Tensors": self._tensors,
                "Inputs": np.array(list(inputs.values()), np.int32),
                "Outputs": np.array(list(outputs.values()), np.int32),
                "Operators": self._operators,
                "Name": "main",
            },
        )
        signature = FlatTable(
            "SignatureDef",
            {
                "Inputs": _maps(inputs),
                "Outputs": _maps(outputs),
                "SignatureKey": "serving_default",
            },
        )
        model = FlatTable(
            "Model",
            {
                "Version": 3,
                "OperatorCodes": [_operator_code(*key) for key in self._codes],
                "Subgraphs": [subgraph],
                "Description": about,
                "Buffers": self._buffers,
                "Metadata": described,
                "SignatureDefs": [signature] if self._has_names else [],
            },
        )
        return write_flatbuffer(model, IDENTIFIER, TFLITE_SCHEMA)

    def _unique(self, name: str) -> str:
        """A name that no other tensor has."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if not count else self._unique(f"{name}_{count}")

    def _buffer(self, data: Array) -> int:
        """The buffer of a constant's elements; equal ones are stored once."""
        array = np.ascontiguousarray(data, data.dtype.newbyteorder("<"))
        if not self._shares_constants or array.nbytes <= LARGEST_COPIED_BYTES:
            return self._content_buffer(array.tobytes())
        self.shared[len(self._buffers)] = array
        self._buffers.append(FlatTable("Buffer", {}))
        return len(self._buffers) - 1

    def _content_buffer(self, content: bytes) -> int:
        """The buffer of some bytes."""
        if content not in self._contents:
            self._contents[content] = len(self._buffers)
            self._buffers.append(FlatTable("Buffer", {"Data": content}))
        return self._contents[content]


def layer_error(layer: Layer, failed: str, fix: str = "") -> UnimplementedError:
    """Return the error of a layer that cannot be written."""
    return UnimplementedError(
        failed, where=layer.where, fix=fix or "Write a compiled model: NAME.armpy"
    )


def _size(size: int | None) -> int:
    """A dimension in a file, which has 1 where it is open."""
    return 1 if size is None else size


def _quantization(scales: Quantization) -> FlatTable:
    fields: dict[str, Field] = {
        "Scale": np.array(scales.scales, np.float32),
        "ZeroPoint": np.array(scales.zero_points, np.int64),
    }
    if scales.axis:
        fields["QuantizedDimension"] = scales.axis
    return FlatTable("QuantizationParameters", fields)


def _operator_code(code: str, version: int) -> FlatTable:
    """The table of an operator's code."""
    number = _CODES.index(code)
    return FlatTable(
        "OperatorCode",
        {
            "DeprecatedBuiltinCode": min(number, _LARGEST_OLD_CODE),
            "BuiltinCode": number,
            "Version": version,
        },
    )


def _maps(tensors: Mapping[str, int]) -> list[FlatTable]:
    """The tables of a signature's names."""
    return [
        FlatTable("TensorMap", {"Name": name, "TensorIndex": at}) for name, at in tensors.items()
    ]
