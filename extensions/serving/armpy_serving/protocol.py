"""Words of the Open Inference Protocol: datatypes, and the metadata of models.

References
----------
Open Inference Protocol, version 2: ``inference_rest.md``, ``open_inference_grpc.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.types import DataType

PLATFORM = "armpy"
"""Platform of armpy's models in metadata."""

Parameter = str | bool | int | float
"""Types of parameters in the protocol."""

_DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    # NumPy has no such type: its bits.
    "BF16": "uint16",
    # Strings, or bytes of any kind.
    "BYTES": "object",
}
_OF_DTYPE = {dtype: name for name, dtype in _DTYPES.items() if name != "BF16"}


@dataclass(frozen=True, slots=True)
class ProtocolTensor:
    """Metadata of an input or output."""

    name: str
    datatype: str  # in the protocol's words, such as ``FP32``
    shape: tuple[int, ...]  # -1 for a dimension that the caller can choose
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """Facts that the protocol has no place for: ``data_type`` in armpy's words where it is another
    than the datatype's, and ``scale`` and ``zero_point`` of quantised tensors, or ``scales`` and
    ``zero_points``, separated by commas, and their ``axis``; ``unknown_rank`` where the number of
    dimensions is the caller's choice, too.
    """

    def document(self) -> dict[str, object]:
        """The same as JSON has it."""
        document: dict[str, object] = {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
        }
        return document | ({"parameters": dict(self.parameters)} if self.parameters else {})


def tensor_metadata(spec: TensorSpec) -> ProtocolTensor:
    """An input or output of a model in the protocol's words."""
    dims = (None,) if spec.shape is None else spec.shape
    shape = tuple(-1 if dim is None else dim for dim in dims)
    return ProtocolTensor(spec.name, datatype_of(spec.data_type), shape, _parameters(spec))


def model_metadata(
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    *,
    versions: Sequence[str] = (),
) -> dict[str, object]:
    """A model's metadata, as JSON has them.

    Parameters
    ----------
    versions : sequence of str
        Versions that are served.
    """
    return {
        "name": name,
        "versions": list(versions),
        "platform": PLATFORM,
        "inputs": [tensor_metadata(spec).document() for spec in inputs],
        "outputs": [tensor_metadata(spec).document() for spec in outputs],
    }


def datatype_of(data_type: DataType) -> str:
    """Return the protocol's name of a type's stored elements.

    Notes
    -----
    Quantised types are the integers that they are stored as; integers of fewer than 8 bits and
    floats that NumPy does not have are the bytes that hold them. Strings are BYTES.
    """
    return "BF16" if data_type is DataType.BFLOAT16 else _OF_DTYPE[data_type.dtype.name]


def dtype_of(datatype: str, where: str = "datatype") -> npt.DTypeLike:
    """NumPy's dtype of a datatype's elements; BF16 by its bits.

    Raises
    ------
    InvalidArgumentError
        If no tensor of armpy can be of it.
    """
    if datatype in _DTYPES:
        return np.dtype(_DTYPES[datatype])
    same = _OF_DTYPE.get(datatype.lower())  # of NumPy's name, such as float32
    raise InvalidArgumentError(
        "unknown datatype",
        where=where,
        expected=", ".join(_DTYPES),
        actual=repr(datatype),
        fix=f'Write "datatype": "{same}"'
        if same
        else "Use the datatype that the model's metadata name (GET /v2/models/NAME)",
    )


def _parameters(spec: TensorSpec) -> dict[str, Parameter]:
    """Return the facts about a tensor beyond the protocol's words."""
    parameters: dict[str, Parameter] = {}
    data_type, quantization = spec.data_type, spec.quantization
    if data_type.is_quantized or data_type.is_narrow or data_type.is_bit_pattern:
        parameters["data_type"] = data_type.name
    if spec.shape is None:
        parameters["unknown_rank"] = True
    if quantization is None:
        return parameters
    if quantization.axis is None:
        return parameters | {"scale": quantization.scale, "zero_point": quantization.zero_point}
    scales = ",".join(map(repr, map(float, quantization.scales)))
    zero_points = ",".join(map(str, quantization.zero_points))
    return parameters | {"scales": scales, "zero_points": zero_points, "axis": quantization.axis}
