"""Descriptions of a model's inputs and outputs, and of the model itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import onnx
from onnx import TensorProto

from armpy.core.dataclass import dataclass
from armpy_compat.onnxruntime.element_types import (
    WORDS,
    element_type_of,
    numpy_type,
    tensor_word,
)
from armpy_compat.onnxruntime.errors import Fail, status_error
from armpy_onnx.element_types import DATA_TYPES

_WITHOUT_VERSION = (1 << 63) - 1
"""Version of a model that has none."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model.

    Parameters
    ----------
    name : str
    type : str
        Type such as ``tensor(float)`` or ``seq(tensor(int64))``.
    shape : list of (int, str or None)
        A name for an open dimension that has one; empty if nothing is known.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True, slots=True)
class FileDescription:
    """Fields of a model's file that describe it, by ONNX Runtime's names for them."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = _WITHOUT_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def description_of(model: onnx.ModelProto) -> FileDescription:
    """Describe a model."""
    return FileDescription(
        model.producer_name,
        model.graph.name,
        model.domain,
        model.doc_string,
        model.graph.doc_string,
        model.model_version if model.HasField("model_version") else _WITHOUT_VERSION,
        {entry.key: entry.value for entry in model.metadata_props},
    )


def arguments_of(values: Iterable[onnx.ValueInfoProto]) -> list[NodeArg]:
    """Describe inputs or outputs."""
    return [NodeArg(value.name, type_text(value.type), shape_of(value.type)) for value in values]


def type_text(kind: Any) -> str:  # Any: onnx.TypeProto, as the package has no types
    """The text for a type.

    References
    ----------
    ONNX Runtime `NodeArg.type`.
    """
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return tensor_word(kind.tensor_type.elem_type)
    if which == "sparse_tensor_type":
        return f"sparse_{tensor_word(kind.sparse_tensor_type.elem_type)}"
    if which == "sequence_type":
        return f"seq({type_text(kind.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({type_text(kind.optional_type.elem_type)})"
    if which == "map_type":
        key = WORDS.get(kind.map_type.key_type, "undefined")
        return f"map({key},{type_text(kind.map_type.value_type)})"
    return ""


def shape_of(kind: Any) -> list[int | str | None]:  # Any: onnx.TypeProto
    """Dimensions of a tensor: sizes, names, or None; empty for other values."""
    if kind.WhichOneof("value") == "optional_type":
        return shape_of(kind.optional_type.elem_type)
    if kind.WhichOneof("value") != "tensor_type":
        return []
    return [_size_of(dim) for dim in kind.tensor_type.shape.dim]


def _size_of(dim: Any) -> int | str | None:  # Any: onnx.TensorShapeProto.Dimension
    """A dimension's size or name; None if it is open."""
    if not dim.HasField("dim_value"):
        return dim.dim_param or None
    # PaddlePaddle's exporter writes -1 for open dimensions.
    return dim.dim_value if dim.dim_value >= 0 else None


def refined(
    arguments: Sequence[NodeArg], outputs: Iterable[Any]
) -> list[NodeArg]:  # Any: TensorSpec
    """Outputs with the types and sizes that follow from the model's layers.

    Parameters
    ----------
    arguments : sequence of NodeArg
        Arguments that the file declares.
    outputs : iterable of TensorSpec
        Outputs of the loaded model.
    """
    specs = {spec.name: spec for spec in outputs}
    return [_refined(argument, specs.get(argument.name)) for argument in arguments]


def check_types(model: Any, outputs: Iterable[Any]) -> None:  # Any: onnx.ModelProto, TensorSpec
    """Check that a model's outputs have the types that its file declares.

    Raises
    ------
    Fail
        If one has another type.
    """
    declared = {value.name: value.type for value in model.graph.output}
    for spec in outputs:
        kind, data_type = declared[spec.name], spec.data_type
        number = kind.tensor_type.elem_type
        # Of the others, the elements that armpy stores do not show the type.
        is_plain = not (data_type.is_bit_pattern or data_type.is_narrow or data_type.is_string)
        if number in WORDS and is_plain and numpy_type(number) != data_type.dtype:
            nodes = [node.name for node in model.graph.node if spec.name in node.output]
            computed = tensor_word(element_type_of(data_type.dtype))
            text = f"Type Error: Type ({type_text(kind)}) of output arg ({spec.name}) of node"
            rest = f"({''.join(nodes)}) does not match expected type ({computed})."
            raise status_error(Fail, f"{text} {rest}")


def _refined(argument: NodeArg, spec: Any) -> NodeArg:  # Any: TensorSpec or None
    if spec is None or not (argument.type.startswith("tensor(") or not argument.type):
        return argument
    is_typed = argument.type and argument.type != tensor_word(TensorProto.UNDEFINED)
    word = argument.type if is_typed else tensor_word(_ELEMENT_TYPES[spec.data_type])
    if spec.shape is None or (argument.shape and len(argument.shape) != len(spec.shape)):
        return NodeArg(argument.name, word, argument.shape)
    named = argument.shape or [None] * len(spec.shape)
    sizes = zip(named, spec.shape, strict=True)
    return NodeArg(argument.name, word, [dim if size is None else size for dim, size in sizes])


_ELEMENT_TYPES = {data_type: number for number, data_type in reversed([*DATA_TYPES.items()])}
