"""Reads .onnx files: protocol buffers to a checked model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import onnx

from armpy.errors import ParserError
from armpy.plugins.hooks.file_kinds import HEAD_BYTES, kind_without_model
from armpy.plugins.hooks.model_file import ModelFile
from armpy.tensor import Shape
from armpy_onnx.messages.canonical import MAIN_DOMAINS, graphs_of, make_canonical
from armpy_onnx.messages.checking import check_model

LEAST_VERSION = 1
"""Least version of ONNX's own operators."""

_LEAST_FORM_WITH_IMPORTS = 3
"""Forms of files below this one are of operator set 1."""

_LARGE_BYTES = 1 << 16
"""Size from which initializers are read without their elements for metadata."""


def load_model(file: ModelFile, *, with_elements: bool = True) -> onnx.ModelProto:
    """The model in a file as it stands there, perhaps without elements of large initializers.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    if not file.data:
        raise _not_onnx(file, "an empty file")
    try:
        if not with_elements:
            smaller = _without_elements(file.data, _GRAPH, _INITIALIZER)
            return onnx.load_model_from_string(smaller)
        return onnx.load_model_from_string(bytes(file.data))
    except Exception as error:  # whatever the library raises, the file is the cause
        if kind := kind_without_model(bytes(file.data[:HEAD_BYTES])):
            raise _not_onnx(file, kind) from error
        raise ParserError(
            f"not a sound ONNX file: {' '.join(str(error).split())}",
            where=file.label,
            actual=f"{len(file.data)} bytes",
            fix="Copy or export the file again",
        ) from error


def _not_onnx(file: ModelFile, kind: str) -> ParserError:
    """The error for a file of another kind in the place of a model."""
    return ParserError(
        "not an .onnx file",
        where=file.label,
        expected="a model in protocol buffers",
        actual=kind,
        fix="Check the path, or download or export the file again",
    )


def read_model(file: ModelFile) -> onnx.ModelProto:
    """The model in a file, checked, and in the form of `armpy_onnx.messages.canonical`.

    Raises
    ------
    ParserError
        If the file is damaged, cannot be understood, or its operator set is not supported.
    """
    model = load_model(file)
    make_canonical(model)
    versions = versions_for(model)
    _check_version(versions[""])
    check_model(model, versions)
    return model


def _check_version(version: int) -> None:
    """Check that ONNX's own operator set is one that the package knows."""
    if not LEAST_VERSION <= version <= onnx.defs.onnx_opset_version():
        raise ParserError(
            "the operator set is not supported",
            expected=f"opset {LEAST_VERSION} to {onnx.defs.onnx_opset_version()}",
            actual=f"opset {version}",
            fix="Convert it with onnx.version_converter, or install a newer onnx package",
        )


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
    return tuple(_size_of(dim, sizes) for dim in tensor.shape.dim)


def _size_of(dim: onnx.TensorShapeProto.Dimension, sizes: Mapping[str, int]) -> int | None:
    """A dimension's own size, or the one given for its name; None if it is open."""
    if not dim.HasField("dim_value"):
        return sizes.get(dimension_name(dim))
    return dim.dim_value if dim.dim_value >= 0 else None


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


def external_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Constants of a model at any depth whose elements lie in other files."""
    yield from filter(is_external, model.graph.initializer)
    for body in (model.graph, *model.functions):
        for node in nodes_inside(body.node):
            for attribute in node.attribute:
                yield from filter(is_external, (attribute.t, *attribute.tensors))
                for graph in graphs_of(attribute):
                    yield from filter(is_external, graph.initializer)


def nodes_inside(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of the graphs inside of them at any depth."""
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting += [graph.node for graph in graphs_of(attribute)]


def is_described(kind: onnx.TypeProto) -> bool:
    """Return whether it is the type of a tensor with a shape, or of something else."""
    if kind.WhichOneof("value") == "tensor_type":
        return bool(kind.tensor_type.elem_type) and bool(kind.tensor_type.HasField("shape"))
    return kind.WhichOneof("value") is not None


def is_external(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's elements lie in another file."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def versions_of(model: onnx.ModelProto | onnx.FunctionProto) -> Mapping[str, int]:
    """Versions of the operator sets that a model imports, by domain; ONNX's own is ``""``."""
    return {
        "" if opset.domain in MAIN_DOMAINS else opset.domain: opset.version
        for opset in model.opset_import
    }


def versions_for(model: onnx.ModelProto) -> Mapping[str, int]:
    """Versions of the operator sets that a model is in, with those that it does not import.

    Raises
    ------
    ParserError
        If it imports none.

    Notes
    -----
    As in ONNX Runtime, a domain that is not imported is of the newest version.
    """
    imported = versions_of(model)
    if not imported and model.ir_version >= _LEAST_FORM_WITH_IMPORTS:
        raise ParserError(
            "the model imports no operator set",
            expected="an entry of 'opset_import'",
            actual="none",
            fix="Export the model again, or add the opset that it was made for",
        )
    if not imported:
        return {"": LEAST_VERSION}
    newest = {domain: versions[1] for domain, versions in _NEWEST_VERSIONS.items()}
    return {**newest, **imported}


_NEWEST_VERSIONS: Mapping[str, tuple[int, int]] = onnx.defs.C.schema_version_map()
"""Oldest and newest versions of the package's operator sets."""


def kind_of(node: onnx.NodeProto) -> str:
    """Return `armpy_onnx.node.NodeData`'s word for the kind of a node."""
    return node.op_type if node.domain in MAIN_DOMAINS else f"{node.domain}.{node.op_type}"
