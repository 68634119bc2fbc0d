"""Outline of a .tflite file, whether armpy has its operators or not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from armpy.core.flatbuffers.reader import TableReader, Tables
from armpy.errors import ParserError
from armpy.frontends.tflite.reader import enumerators, read_model
from armpy.frontends.tflite.signatures import choose_signature
from armpy.frontends.tflite.subgraphs import SubgraphOperator, Subgraphs
from armpy.frontends.tflite.tensors import stored_bytes
from armpy.ops.operation import located
from armpy.plugins.hooks.model_file import ModelFile
from armpy.plugins.hooks.outline import FileGraph, FileOperator, FileOutline, FileTensor
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES

_BITS = {
    **{"BOOL": 8, "INT8": 8, "UINT8": 8, "INT16": 16, "UINT16": 16, "FLOAT16": 16, "BFLOAT16": 16},
    **{"INT32": 32, "UINT32": 32, "FLOAT32": 32, "INT64": 64, "UINT64": 64, "FLOAT64": 64},
    **{"COMPLEX64": 64, "COMPLEX128": 128, "INT4": 4, "UINT4": 4, "INT2": 2},
}
"""Bits of an element, by the schema's name of the type; others have no fixed size."""

_COUNTS = frozenset({"BOOL", "INT32", "INT64", "UINT32", "UINT64", "STRING"})
"""Types of constants that say how, not what: shapes, axes; unless they have a scale."""

_NAMES = {
    "IF": ("then", "else"),
    "WHILE": ("condition", "body"),
    "CALL_ONCE": ("initialisation",),
    "STABLEHLO_COMPOSITE": ("decomposition",),
}
"""Names of operators' graphs, in the order of `SubgraphOperator.subgraphs`."""


def read_outline(
    file: ModelFile,
    signature: str | None,  # whose subgraph is the main one
) -> FileOutline:
    """The operators and tensors of a .tflite file.

    Raises
    ------
    ParserError
        If the file is damaged, or has no such signature.
    """
    try:
        return _outline(read_model(file.data), signature)
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def _outline(model: TableReader, signature: str | None) -> FileOutline:
    """The main subgraph, and those that it runs, each once."""
    subgraphs = Subgraphs(model, DEFAULT_MEMORY_LIMIT_BYTES)
    buffers = model.tables("Buffers", "buffer")
    main = 0 if signature is None else choose_signature(model, signature).subgraph
    places = {main: 0}
    waiting, graphs = [main], []
    while waiting:
        index = waiting.pop(0)
        for operator in subgraphs.operators(index):
            for inner in operator.subgraphs:
                if inner not in places:
                    places[inner] = len(places)
                    waiting.append(inner)
        graphs.append(_graph(subgraphs, index, places, buffers))
    return FileOutline(tuple(graphs))


def _graph(subgraphs: Subgraphs, index: int, places: dict[int, int], buffers: Tables) -> FileGraph:
    table = subgraphs[index]
    tensors = tuple(_tensor(tensor, buffers) for tensor in table.tables("Tensors", "tensor"))
    operators = tuple(
        _operator(operator, tensors, places) for operator in subgraphs.operators(index)
    )
    tensors = tuple(
        tensor if tensor.name else replace(tensor, name=f"tensor {number}")
        for number, tensor in enumerate(tensors)
    )
    inputs, outputs = (_checked(table, field, tensors, 0) for field in ("Inputs", "Outputs"))
    return FileGraph(table.text("Name") or f"subgraph {index}", tensors, operators, inputs, outputs)


def _operator(
    operator: SubgraphOperator, tensors: tuple[FileTensor, ...], places: dict[int, int]
) -> FileOperator:
    """One operator, named after its first output as its layers are."""
    table = operator.table
    inputs, outputs = (_checked(table, field, tensors, -1) for field in ("Inputs", "Outputs"))
    name = tensors[outputs[0]].name if outputs and outputs[0] >= 0 else ""
    names = _NAMES.get(operator.name, ())
    graphs = zip(names, operator.subgraphs, strict=False)
    return FileOperator(
        operator.name,
        name or f"operator {operator.number} {operator.name}",
        inputs,
        outputs,
        graphs=tuple((name, places[inner]) for name, inner in graphs),
    )


def _checked(
    table: TableReader, field: str, tensors: tuple[FileTensor, ...], lowest: int
) -> tuple[int, ...]:
    """Indexes of tensors, each of which is there."""
    indexes: list[int] = table.numbers(field)
    for index in indexes:
        if not lowest <= index < len(tensors):
            raise table.error(
                f"there is no tensor {index}",
                expected=f"an index below {len(tensors)}",
                actual=str(index),
            )
    return tuple(indexes)


def _tensor(table: TableReader, buffers: Tables) -> FileTensor:
    number = table.integer("Type")
    kind = enumerators("TensorType").get(number, f"type {number}")
    stored_size = int(stored_bytes(buffers, table).size)
    shape = _shape(table, is_known=stored_size > 0)
    scales, zero_points, axis = _quantization(table)
    is_constant = stored_size > 0
    size_bytes: int | None = stored_size
    if not is_constant:
        is_open = shape is None or None in shape or kind not in _BITS
        count = 1 if shape is None else math.prod(dim or 0 for dim in shape)
        size_bytes = None if is_open else (count * _BITS[kind] + 7) // 8
    return FileTensor(
        table.text("Name"),
        shape,
        kind,
        is_constant,
        is_constant and (kind not in _COUNTS or bool(scales)),
        size_bytes,
        scales,
        zero_points,
        axis if len(scales) > 1 else None,
    )


def _shape(table: TableReader, *, is_known: bool) -> tuple[int | None, ...] | None:
    """A tensor's shape, with None for what callers choose; None if its rank is not known.

    A constant without dimensions is a scalar.
    """
    dims: list[int] = table.numbers("ShapeSignature") or table.numbers("Shape")
    if not dims and not is_known and not table.flag("HasRank"):
        return None
    return tuple(None if dim < 0 else dim for dim in dims)


def _quantization(table: TableReader) -> tuple[tuple[float, ...], tuple[int, ...], int]:
    """Scales, zero points and the axis that they are along."""
    stored = table.table("Quantization")
    if stored is None:
        return (), (), 0
    numbers: list[list[Any]] = [stored.numbers(field) for field in ("Scale", "ZeroPoint")]
    scales, points = numbers  # Any: of one type each
    return tuple(map(float, scales)), tuple(map(int, points)), stored.integer("QuantizedDimension")
