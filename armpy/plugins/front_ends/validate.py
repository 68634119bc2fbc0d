"""Checks of the answers of plugins' front-ends."""

from __future__ import annotations

from collections.abc import Iterable

from armpy.errors import InvalidArgumentError, ParserError
from armpy.graph import Graph, Layer, Value, Variable, nested_graphs, verify_graph
from armpy.graph.network import Network
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Operation
from armpy.plugins.hooks import FrontEnd, ModelSignature
from armpy.plugins.proxy.guarded_call import describe
from armpy.tensor import TensorInfo


def check_front_end(front_end: FrontEnd) -> None:
    """Check what the class itself does not.

    Raises InvalidArgumentError if the default of an option is not allowed, or two options have one
    name.
    """
    for option in front_end.options:
        option.check(option.default)
    names = [option.name for option in front_end.options]
    if len(set(names)) < len(names):
        raise InvalidArgumentError("two options have one name", actual=", ".join(names))


def checked_graph(network: object, memory_limit_bytes: int) -> Graph:
    """The graph of a plugin's parser.

    Raises ArmpyError if the graph is not sound, or larger than the limit; any exception that the
    plugin's objects raise.
    """
    graph = network.build() if isinstance(network, Network) else network
    if not isinstance(graph, Graph):
        raise _wrong_type("the parser's answer", "Network or Graph", network)
    variable_bytes = 0
    for part in (graph, *nested_graphs(graph)):
        # First: all later checks call methods of these parts.
        _check_parts(part)
        verify_graph(part)
        for name in (*(value.name for value in part.inputs), *part.output_names):
            if not isinstance(name, str):
                raise ParserError("a name is not text", actual=describe(name))
        for layer in part.layers:
            if not isinstance(layer.operation, Operation):
                raise ParserError("a layer has no operation", actual=describe(layer.operation))
            check_attributes(layer.operation)
        for value in part.values():
            if value.info.is_fully_shaped:
                # A small file can claim tensors of any size.
                _check_size(f"tensor '{value.name}'", value.info.size_bytes, memory_limit_bytes)
        # Together, as all of them take memory as long as the network.
        variable_bytes += sum(variable.initial.nbytes for variable in part.variables)
    _check_size("all variables together", variable_bytes, memory_limit_bytes)
    return graph


def _check_parts(graph: Graph) -> None:
    """Check that a graph is made of armpy's parts."""
    parts: tuple[tuple[type, Iterable[object]], ...] = (
        (Layer, graph.layers),
        (Variable, graph.variables),
        (Value, (v for a in graph.layers for v in (*a.inputs, *a.outputs) if v is not None)),
        (Value, graph.values()),
        (TensorInfo, (value.info for value in graph.values())),
    )
    for kind, group in parts:
        for part in group:
            if not isinstance(part, kind):
                raise _wrong_type("a part of the graph", kind.__name__, part)


def _check_size(noun: str, size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        raise ParserError(
            f"{noun}: larger than the memory limit",
            expected=f"at most {limit_bytes} bytes",
            actual=str(size_bytes),
        )


def checked_signatures(given: object) -> tuple[ModelSignature, ...]:
    """A front-end's signatures, checked."""
    if not isinstance(given, (list, tuple)):
        raise _wrong_type("the answer", "a list of ModelSignature", given)
    for signature in given:
        if not isinstance(signature, ModelSignature) or not _has_names(signature):
            raise _wrong_type("a signature", "a ModelSignature with names", signature)
    names = [signature.name for signature in given]
    if len(set(names)) != len(names):
        raise ParserError("two signatures have one name", actual=", ".join(names))
    return tuple(given)


def _has_names(signature: ModelSignature) -> bool:
    names = (signature.name, *signature.inputs, *signature.outputs)
    return all(isinstance(name, str) for name in names)


def _wrong_type(noun: str, expected: str, answer: object) -> ParserError:
    return ParserError(f"{noun} has the wrong type", expected=expected, actual=describe(answer))
