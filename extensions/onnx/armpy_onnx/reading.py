"""Reads .onnx files: protocol buffers to a checked model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TypeAlias

import onnx

from armpy.errors import ParserError
from armpy.plugins.hooks.model_file import ModelFile
from armpy.tensor import Shape

FreeNames: TypeAlias = dict[int, tuple[onnx.GraphProto, Iterable[str]]]
"""What graphs read from outside, by their ids; a graph that is held keeps its id."""

LEAST_VERSION = 1
"""Of ONNX's own operators."""

_MAIN = ("", "ai.onnx")

_ALWAYS = 1 << 31
WITHOUT_SCHEMA: Mapping[str, int] = {
    "Affine": _ALWAYS,
    "Crop": _ALWAYS,
    "DynamicSlice": _ALWAYS,
    "ImageScaler": _ALWAYS,
    "LayerNormalization": 17,
    "MeanVarianceNormalization": 9,
    "ParametricSoftplus": _ALWAYS,
    "Scale": _ALWAYS,
    "ScaledTanh": _ALWAYS,
    "SimplifiedLayerNormalization": _ALWAYS,
    "ThresholdedRelu": 10,
}
"""Operators of ONNX's own domain that ONNX Runtime takes in operator sets below these, and that
the standard does not have there. Those of ONNX's first years are taken in later ones, too, as
`onnx.checker` does."""

_LARGE_BYTES = 1 << 16
"""Of initializers that are checked without their elements."""

_UNCHECKED = "armpy.unchecked"
"""Domain of operators that `onnx.checker` is not to look at."""


def _unsound(file: ModelFile, error: Exception) -> ParserError:
    """The error for a file that the onnx package refuses."""
    return ParserError(
        f"not a sound ONNX file: {' '.join(str(error).split())}",
        where=file.label,
        actual=f"{len(file.data)} bytes",
        fix="Copy or export the file again; onnx.checker names the fault",
    )


def load_model(file: ModelFile, *, with_elements: bool = True) -> onnx.ModelProto:
    """The model in a file, not checked, perhaps without the elements of large initializers.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    try:
        if not with_elements:
            path = _GRAPH, _INITIALIZER
            return onnx.load_model_from_string(_without_elements(file.data, *path))
        return onnx.load_model_from_string(bytes(file.data))
    except Exception as error:  # whatever the library raises, the file is the cause
        raise _unsound(file, error) from error


def read_model(file: ModelFile) -> onnx.ModelProto:
    """The model in a file.

    Raises
    ------
    ParserError
        If the file is damaged, or its operator set not supported.
    """
    model, light = (load_model(file, with_elements=whole) for whole in (True, False))
    sort_nodes(model.graph)
    sort_nodes(light.graph)
    try:
        onnx.checker.check_model(_without_harmless(light))
    except Exception as error:  # whatever the library raises, the file is the cause
        raise _unsound(file, error) from error
    version = versions_of(model).get("", 1)
    if not LEAST_VERSION <= version <= onnx.defs.onnx_opset_version():
        raise ParserError(
            "the operator set is not supported",
            where=file.label,
            expected=f"opset {LEAST_VERSION} to {onnx.defs.onnx_opset_version()}",
            actual=f"opset {version}",
            fix="Convert it with onnx.version_converter, or install a newer onnx package",
        )
    return model


def sort_nodes(graph: onnx.GraphProto) -> None:
    """Put each node of a graph after those whose outputs it reads, as ONNX Runtime does.

    Notes
    -----
    ONNX wants files to be sorted, and some exporters' are not. Nodes of a sorted graph, and of one
    with a circle, keep their places.
    """
    writers = {name: number for number, node in enumerate(graph.node) for name in node.output}
    sources = [{writers[n] for n in names_read(node) if n in writers} for node in graph.node]
    if all(max(of, default=-1) < number for number, of in enumerate(sources)):
        return
    order = TopologicalSorter(dict(enumerate(sources)))
    try:
        nodes = [graph.node[number] for number in order.static_order()]
    except CycleError:
        return  # the checker names the fault
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def describe(file: ModelFile) -> Mapping[str, str]:
    """Describe a file by name.

    Raises
    ------
    ParserError
        As of `read_model`.
    """
    model = read_model(file)
    sets = sorted(versions_of(model).items())
    facts = {
        "operator sets": ", ".join(f"{name or 'ai.onnx'} {version}" for name, version in sets),
        "dimensions": ", ".join(dict.fromkeys(dimension_names(model.graph))),
        "functions": ", ".join(function.name for function in model.functions[:_MOST_NAMED]),
    }
    return {name: text[:_LONGEST_FACT] for name, text in facts.items() if name and text}


_MOST_NAMED = 20
_LONGEST_FACT = 200


def dimension_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Names of the inputs' dimensions, also of tensors in sequences and optionals."""
    for value in graph.input:
        kind = value.type
        while (which := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
            kind = getattr(kind, which).elem_type
        for dim in kind.tensor_type.shape.dim:
            if name := dimension_name(dim):
                yield name


def dimension_name(dim: onnx.TensorShapeProto.Dimension) -> str:
    """Name of an open dimension; empty if it has none that identifies it.

    Notes
    -----
    Exporters write placeholders such as "?" for dimensions that have nothing to do with each
    other. A name therefore needs a letter.
    """
    name: str = dim.dim_param
    return name if any(map(str.isalpha, name)) and name != "None" else ""


def declared_shape(
    tensor: onnx.TypeProto.Tensor, sizes: Mapping[str, int] = MappingProxyType({})
) -> Shape | None:
    """Shape of a tensor as a model declares it; None if it declares no rank.

    Parameters
    ----------
    sizes : mapping of str to int, optional
        Sizes of named dimensions.

    Notes
    -----
    Negative sizes stand for open dimensions: PaddlePaddle's exporter writes -1.
    """
    if not tensor.HasField("shape"):
        return None
    return tuple(
        (dim.dim_value if dim.dim_value >= 0 else None)
        if dim.HasField("dim_value")
        else sizes.get(dimension_name(dim))
        for dim in tensor.shape.dim
    )


def _without_elements(message: memoryview, *path: int) -> bytes:
    """A message of ONNX without the elements of large tensors, of which the checker makes copies.

    They are checked where they are read. `path` has the numbers of the fields that lead from the
    message to tensors. Damage raises IndexError or ValueError, or stays as it is.
    """
    if not path:
        return _without_raw_data(message)
    parts: list[bytes | memoryview] = []
    copied = 0
    for number, begin, value, end in _fields(message):
        if number == path[0]:
            content = _without_elements(message[value:end], *path[1:])
            key = _varint(number << 3 | _SIZED)
            parts += [message[copied:begin], key, _varint(len(content)), content]
            copied = end
    return b"".join((*parts, message[copied:]))


def _without_raw_data(message: memoryview) -> bytes:
    """A tensor without elements, if it has nothing but many bytes of plain ones."""
    fields = _fields(message) if len(message) > _LARGE_BYTES else ()
    for number, begin, value, end in fields:
        if number == _RAW_DATA and end - value > _LARGE_BYTES:
            tensor = onnx.TensorProto.FromString(b"".join((message[:begin], message[end:])))
            others = any(getattr(tensor, name) for name in _OTHER_ELEMENTS)
            is_typed = tensor.data_type != onnx.TensorProto.STRING
            is_whole = not others and not tensor.HasField("segment")
            if is_typed and is_whole and min(tensor.dims, default=0) > 0:
                tensor.dims[:] = [0]
                return bytes(tensor.SerializeToString())
    return bytes(message)


_OTHER_ELEMENTS = (
    *(f"{kind}_data" for kind in ("float", "int32", "string", "int64", "double", "uint64", "raw")),
    "external_data",
    "data_location",
)
"""Fields that say where elements are, if not in ``raw_data``."""

_GRAPH, _INITIALIZER, _RAW_DATA = (
    kind.DESCRIPTOR.fields_by_name[name].number
    for kind, name in (
        (onnx.ModelProto, "graph"),
        (onnx.GraphProto, "initializer"),
        (onnx.TensorProto, "raw_data"),
    )
)

_NUMBER, _SIZED = 0, 2
"""Kinds of fields in Protocol Buffers: a number of any length, and a length before its bytes."""

_FIXED_BYTES = {1: 8, 5: 4}
"""Size of fields of the other kinds."""

_LONGEST_NUMBER = 10
"""Bytes of a number of 64 bits."""


def _fields(message: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Numbers of a message's fields, where each and its value begin, and where it ends."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _number(message, at)
        value = at
        if key & 7 == _SIZED:
            size, value = _number(message, at)
            at = value + size
        elif key & 7 == _NUMBER:
            _, at = _number(message, at)
        elif key & 7 in _FIXED_BYTES:
            at += _FIXED_BYTES[key & 7]
        else:
            raise ValueError(f"a field is of kind {key & 7}")
        yield key >> 3, begin, value, at


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number of any length in a message, and where it ends."""
    number = 0
    for place in range(_LONGEST_NUMBER):
        number |= (message[at + place] & 0x7F) << 7 * place
        if message[at + place] < 0x80:
            return number, at + place + 1
    raise ValueError("a number has no end")


def _varint(number: int) -> bytes:
    """A number as messages have it."""
    if number < 0x80:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


def _without_harmless(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without what `onnx.checker` complains of and armpy does not mind.

    Notes
    -----
    That is a newer form of the file than the package's (its operator sets are looked at apart),
    initializers of form 3 that are not inputs, a graph without a name, inputs and outputs of any
    rank, types that follow from nodes, functions of another operator set than the model's,
    operators that the standard does not have, and elements in other files, which are checked where
    they are read.
    """
    graph = model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    odd_functions = [function for function in model.functions if _is_odd(function, model)]
    untyped = [value for value in values if not _is_described(value)]
    # The checker wants initializers among the inputs up to form 3; files of that form without them
    # are common.
    least = 4 if model.ir_version == 3 and graph.initializer else model.ir_version
    ir_version = min(least, onnx.IR_VERSION)
    odd = ir_version != model.ir_version or odd_functions or untyped or not graph.name
    if not (odd or any(external_tensors(model)) or any(_unstandardized(model))):
        return model
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    plain.ir_version = ir_version
    plain.graph.name = graph.name or "graph"
    for function in odd_functions:
        plain.functions.remove(function)
    for value in (*plain.graph.input, *plain.graph.output, *plain.graph.value_info):
        if not _is_described(value):
            value.type.tensor_type.elem_type = (
                value.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
            )
            value.type.tensor_type.shape.SetInParent()
    for tensor in list(external_tensors(plain)):
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
        tensor.dims[:] = [0]
    for node in list(_unstandardized(plain)):
        node.domain = _UNCHECKED
    for opsets in (plain.opset_import, *(function.opset_import for function in plain.functions)):
        opsets.add(domain=_UNCHECKED, version=1)
    return plain


def _bodies(
    model: onnx.ModelProto,
) -> Iterator[tuple[onnx.ModelProto | onnx.FunctionProto, Iterable[onnx.NodeProto]]]:
    """All nodes of a model at any depth, by what says which operator sets they are of."""
    yield model, nodes_inside(model.graph.node)
    for function in model.functions:
        yield function, nodes_inside(function.node)


def external_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Constants of a model at any depth whose elements lie in other files."""
    yield from filter(is_external, model.graph.initializer)
    for _, nodes in _bodies(model):
        for node in nodes:
            for attribute in node.attribute:
                yield from filter(is_external, (attribute.t, *attribute.tensors))
                for graph in (attribute.g, *attribute.graphs):
                    yield from filter(is_external, graph.initializer)


def _unstandardized(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Nodes of operators that the standard does not have in the operator set of the node."""
    for body, nodes in _bodies(model):
        version = versions_of(body).get("", 1)
        for node in nodes:
            if node.domain in _MAIN and version < WITHOUT_SCHEMA.get(node.op_type, 0):
                yield node


def nodes_inside(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of the graphs inside of them at any depth."""
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting += [graph.node for graph in (attribute.g, *attribute.graphs) if graph.node]


def _is_odd(function: onnx.FunctionProto, model: onnx.ModelProto) -> bool:
    """Return whether a function is of another operator set than the model."""
    versions = versions_of(model)
    return any(versions.get(name, of) != of for name, of in versions_of(function).items())


def _is_described(value: onnx.ValueInfoProto) -> bool:
    """Return whether type and rank of an input or output are there, or it is not a tensor."""
    kind = value.type.WhichOneof("value")
    tensor = value.type.tensor_type
    return kind is not None and (
        kind != "tensor_type" or (bool(tensor.elem_type) and tensor.HasField("shape"))
    )


def is_external(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's elements lie in another file."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def versions_of(model: onnx.ModelProto | onnx.FunctionProto) -> Mapping[str, int]:
    """Versions of the operator sets that a model uses, by domain; ONNX's own is ``""``."""
    return {
        "" if opset.domain in _MAIN else opset.domain: opset.version for opset in model.opset_import
    }


def kind_of(node: onnx.NodeProto) -> str:
    """Return `armpy_onnx.node.NodeData`'s word for the kind of a node."""
    return node.op_type if node.domain in _MAIN else f"{node.domain}.{node.op_type}"


def names_read(node: onnx.NodeProto, known: FreeNames | None = None) -> Iterator[str]:
    """Names that a node, or a graph inside of it, reads."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from free_names(graph, known)


def free_names(graph: onnx.GraphProto, known: FreeNames | None = None) -> Iterable[str]:
    """Names that a graph, or one inside of it, reads and does not write.

    Parameters
    ----------
    known : dict, optional
        Earlier results for graphs, which are used and added to: graphs lie in each
        other, and each would be looked through for every graph around it.
    """
    if known is not None and id(graph) in known:
        return known[id(graph)][1]
    own = {value.name for value in graph.input}
    own.update(tensor.name for tensor in graph.initializer)
    own.update(tensor.values.name for tensor in graph.sparse_initializer)
    names: dict[str, None] = {}
    for node in graph.node:
        names.update((name, None) for name in names_read(node, known) if name not in own)
        own.update(node.output)
    names.update((value.name, None) for value in graph.output if value.name not in own)
    if known is not None:
        known[id(graph)] = graph, names
    return names
