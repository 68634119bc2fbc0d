"""Outline of an .onnx file, whether armpy has its operators or not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx
from onnx import TensorProto

from armpy.plugins.hooks.model_file import ModelFile
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.tensor import Shape
from armpy_onnx.folding import fold_pairs
from armpy_onnx.messages.canonical import decode_texts, initial_names
from armpy_onnx.messages.inference import inferred_graph
from armpy_onnx.reading import declared_shape, is_described, kind_of, load_model, versions_of

_BITS = {
    **{"FLOAT": 32, "FLOAT16": 16, "BFLOAT16": 16, "DOUBLE": 64, "BOOL": 8},
    **{"INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64},
    **{"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64},
    **{"INT4": 4, "UINT4": 4, "INT2": 2, "UINT2": 2, "FLOAT4E2M1": 4},
    **{"FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8},
    **{"FLOAT8E8M0": 8, "COMPLEX64": 64, "COMPLEX128": 128},
}
"""Bits of an element, by the format's name of the type; others have no fixed size."""

_COUNTS = frozenset({"INT64", "UINT64", "BOOL", "STRING"})
"""Types of constants that say how, not what: shapes, axes, indexes."""

_GRAPH_NAMES = {
    "then_branch": "then",
    "else_branch": "else",
    "body": "body",
}
"""armpy's names of the graphs of operators, by their attributes."""


def read_outline(file: ModelFile) -> FileOutline:
    """The operators and tensors of an .onnx file.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    model = load_model(file)
    decode_texts(model)
    _infer(model)
    outline = _Outline()
    labels = _labels(model)
    outline.add(model.graph, {}, labels)
    return FileOutline(tuple(graph for graph in outline.graphs if graph is not None))


def _infer(model: onnx.ModelProto) -> None:
    """Add shapes that a model's file does not state, where they can be inferred."""
    graph = model.graph
    described = {
        value.name for value in (*graph.value_info, *graph.output) if is_described(value.type)
    }
    if all(name in described for node in graph.node for name in node.output):
        return
    inferred = inferred_graph(model)
    if inferred is None:
        return
    for ours, theirs in (
        (graph.value_info, inferred.value_info),
        (graph.output, inferred.output),
        (graph.node, inferred.node),  # with the values of graphs inside
    ):
        del ours[:]
        ours.extend(theirs)


def _labels(model: onnx.ModelProto) -> dict[str, str]:
    """Return the parser's names of main nodes' layers, by their first output.

    Notes
    -----
    A node that was folded with what quantises its output has the name that the folded one has.
    """
    written = {name: node for node in model.graph.node for name in node.output}
    labels = {}
    for number, node in enumerate(fold_pairs(model.graph, versions_of(model).get("", 1))):
        if not node.output:
            continue
        writer = written.get(node.output[0], node)
        if writer.op_type == "QuantizeLinear" and node.op_type != writer.op_type:
            writer = _quantized_by(writer, written)
        labels[writer.output[0]] = node.name or f"{node.op_type}_{number}"
    return labels


def _quantized_by(node: onnx.NodeProto, written: Mapping[str, onnx.NodeProto]) -> onnx.NodeProto:
    """The operator whose output a node quantises, in front of an activation function."""
    writer = written.get(node.input[0], node)
    if writer.op_type in ("Relu", "Clip"):
        before = written.get(writer.input[0], writer)
        if before.op_type != "DequantizeLinear":
            return before
    return writer


class _Outline:
    """Collects the graphs of a model."""

    def __init__(self) -> None:
        self.graphs: list[FileGraph | None] = []

    def add(
        self,
        graph: onnx.GraphProto,
        around: Mapping[str, FileTensor],
        labels: Mapping[str, str],
        prefixes: Sequence[str] = ("",),
    ) -> int:
        """Add a graph and those that its nodes run; its place.

        Parameters
        ----------
        around : mapping of str to FileTensor
            Tensors of graphs around it, by name.
        labels : mapping of str to str
            Names of the nodes' layers, by the node's first output.
        prefixes : sequence of str
            First parts of the names that its nodes' layers may have.
        """
        place = len(self.graphs)
        self.graphs.append(None)
        known = {**around, **_tensors(graph)}
        places: dict[str, int] = {}
        operators = []
        for number, node in enumerate(graph.node):
            name = node.name or f"{node.op_type}_{number}"
            label = node.name or labels.get(node.output[0] if node.output else "", name)
            runs = tuple(
                (role, self.add(inner, known, {}, _inner_prefixes(prefixes, label, role)))
                for role, inner in _graphs(node)
            )
            operators.append(
                FileOperator(
                    kind_of(node),
                    label,
                    _places(node.input, places),
                    _places(node.output, places),
                    tuple(prefix + label for prefix in prefixes) if any(prefixes) else (),
                    runs,
                )
            )
        constants = initial_names(graph)
        inputs = _places([v.name for v in graph.input if v.name not in constants], places)
        outputs = _places([value.name for value in graph.output], places)
        tensors = tuple(known.get(name) or FileTensor(name, None, "") for name in places)
        self.graphs[place] = FileGraph(graph.name, tensors, tuple(operators), inputs, outputs)
        return place


def _inner_prefixes(around: Sequence[str], label: str, role: str) -> tuple[str, ...]:
    """Return the parser's prefixes of names of nodes inside a node.

    Notes
    -----
    A graph that is chosen or written out is named after the node that runs it, one that becomes
    a graph of its own after its role, or as it is.
    """
    return (*(f"{prefix}{label}/{role}/" for prefix in around), f"{role}/", "")


def _graphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """The graphs that a node runs, with their names."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield _GRAPH_NAMES.get(attribute.name, attribute.name), attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{number}]", graph


def _places(names: Iterable[str], places: dict[str, int]) -> tuple[int, ...]:
    """Places of tensors, which those get that have none yet."""
    return tuple(places.setdefault(name, len(places)) if name else LEFT_OUT for name in names)


def _tensors(graph: onnx.GraphProto) -> dict[str, FileTensor]:
    """Tensors of which a graph says something, by name."""
    tensors = {
        value.name: _value(value) for value in (*graph.value_info, *graph.output, *graph.input)
    }
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.HasField("t"):
                    tensors[node.output[0]] = _constant(attribute.t, node.output[0])
    tensors.update((tensor.name, _constant(tensor, tensor.name)) for tensor in graph.initializer)
    for sparse in graph.sparse_initializer:
        tensors[sparse.values.name] = _constant(sparse.values, sparse.values.name)
    return tensors


def _value(value: onnx.ValueInfoProto) -> FileTensor:
    """A tensor that is computed or given."""
    which = value.type.WhichOneof("value")
    if which != "tensor_type":
        return FileTensor(value.name, None, (which or "").removesuffix("_type"))
    tensor = value.type.tensor_type
    kind = _type_name(tensor.elem_type)
    shape = declared_shape(tensor)
    return FileTensor(value.name, shape, kind, size_bytes=_size(shape, kind))


def _constant(tensor: TensorProto, name: str) -> FileTensor:
    """A tensor whose elements are in the file, or beside it."""
    kind, shape = _type_name(tensor.data_type), tuple(tensor.dims)
    return FileTensor(
        name,
        shape,
        kind,
        is_constant=True,
        is_parameter=kind not in _COUNTS,
        size_bytes=_size(shape, kind),
    )


def _type_name(number: int) -> str:
    """The format's name of an element type; empty for none."""
    if not number:
        return ""
    try:
        return str(TensorProto.DataType.Name(number))
    except ValueError:
        return f"type {number}"


def _size(shape: Shape | None, kind: str) -> int | None:
    """Bytes of a tensor; None where they are not known."""
    if kind not in _BITS or shape is None or None in shape:
        return None
    return (math.prod(dim or 0 for dim in shape) * _BITS[kind] + 7) // 8
