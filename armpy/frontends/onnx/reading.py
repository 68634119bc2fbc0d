"""Reads .onnx files: protocol buffers to a checked model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from armpy.errors import ParserError
from armpy.hooks.model_file import ModelFile

LEAST_VERSION = 1
"""Of ONNX's own operators."""

_HARMLESS = ("Opset import for domain",)
"""What `onnx.checker` complains of and armpy does not mind: functions of another operator set than
the model's are read in their own."""

_MAIN = ("", "ai.onnx")


def read_model(file: ModelFile) -> onnx.ModelProto:
    """The model in a file.

    Raises
    ------
    ParserError
        If the file is damaged, or its operator set not supported.
    """
    try:
        model = onnx.load_model_from_string(bytes(file.data))
        onnx.checker.check_model(model)
    except Exception as error:  # whatever the library raises, the file is the cause
        if not any(text in str(error) for text in _HARMLESS):
            raise ParserError(f"not a sound ONNX file: {error}", where=file.label) from error
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


def versions_of(model: onnx.ModelProto | onnx.FunctionProto) -> Mapping[str, int]:
    """Versions of the operator sets that a model uses, by domain; ONNX's own is ``""``."""
    return {
        "" if opset.domain in _MAIN else opset.domain: opset.version for opset in model.opset_import
    }


def kind_of(node: onnx.NodeProto) -> str:
    """What `armpy.frontends.onnx.node.NodeData` calls the kind of a node."""
    return node.op_type if node.domain in _MAIN else f"{node.domain}.{node.op_type}"


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node, or a graph inside of it, reads."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from free_names(graph)


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Names that a graph, or one inside of it, reads and does not write."""
    own = {value.name for value in graph.input}
    own.update(tensor.name for tensor in graph.initializer)
    own.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from (name for name in names_read(node) if name not in own)
        own.update(node.output)
    yield from (value.name for value in graph.output if value.name not in own)
