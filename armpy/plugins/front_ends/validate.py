"""Answers of plugins' front-ends, checked and made plain: nothing of them is code any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from armpy.backend.options import BackendOption
from armpy.errors import InvalidArgumentError, ParserError
from armpy.graph import Graph, Layer, Value, Variable, nested_graphs, verify_graph
from armpy.graph.network import Network
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Operation
from armpy.plugins.hooks import FrontEnd, Magic, ModelSignature
from armpy.plugins.proxy.guarded_call import describe, plain_text
from armpy.tensor import TensorInfo


def plain_front_end(given: FrontEnd) -> FrontEnd:
    """A front-end whose fields are of plain types, which armpy can compare without a guard.

    Raises whatever fields raise that cannot be used, or are code.
    """
    return replace(
        given,
        name=plain_text(given.name),
        title=plain_text(given.title),
        suffixes=tuple(map(plain_text, given.suffixes)),
        magic=tuple(Magic(bytes(memoryview(m.pattern)), m.offset) for m in given.magic),
        options=_plain_options(given),
        requires=tuple(map(plain_text, given.requires)),
        install=plain_text(given.install),
    )


def _plain_options(front_end: FrontEnd) -> tuple[BackendOption, ...]:
    """Options of one name each, which are checked by armpy's own code and have defaults."""
    options = tuple(front_end.options)
    for option in options:
        # Exactly: the check of a subclass would be the plugin's code, run at each load.
        if type(option) is not BackendOption:
            raise InvalidArgumentError(
                "an option has the wrong type", expected="BackendOption", actual=describe(option)
            )
        option.check(option.default)
    names = [option.name for option in options]
    if len(set(names)) < len(names):
        raise InvalidArgumentError("two options have one name", actual=", ".join(names))
    return options


def checked_graph(network: object, memory_limit_bytes: int) -> Graph:
    """Copy the graph of a plugin's parser without the parser's own methods.

    Raises ArmpyError if the graph is not sound, or larger than the limit; any exception that the
    plugin's objects raise.
    """
    if type(network) not in (Network, Graph):  # not of a subclass, whose methods are its own
        raise _wrong_type("the parser's answer", "Network or Graph", network)
    # The class's method: an object may have another one of this name.
    built = Network.build(network) if isinstance(network, Network) else network
    assert isinstance(built, Graph)
    # In plain tuples of its own, so that the checked graph is the one that runs.
    graph = Graph(
        tuple(built.inputs),
        tuple(built.outputs),
        tuple(built.output_names),
        tuple(built.layers),
        tuple(built.variables),
        tuple(built.default_shapes),
        tuple(built.output_shapes),
    )
    variable_bytes = 0
    for part in (graph, *nested_graphs(graph)):
        # First: all later checks call methods of these parts.
        _check_parts(part)
        verify_graph(part)
        for name in (*(value.name for value in part.inputs), *part.output_names):
            if type(name) is not str:
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
    """Check that a graph is made of armpy's own parts, not of subclasses that are code."""
    parts: tuple[tuple[type, Iterable[object]], ...] = (
        (Layer, graph.layers),
        (Variable, graph.variables),
        (Value, (v for a in graph.layers for v in (*a.inputs, *a.outputs) if v is not None)),
        (Value, graph.values()),
        (TensorInfo, (value.info for value in graph.values())),
    )
    for kind, group in parts:
        for part in group:
            if type(part) is not kind:
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
    signatures = tuple(given)
    for signature in signatures:
        if not isinstance(signature, ModelSignature) or type(signature.name) is not str:
            raise _wrong_type("a signature", "a ModelSignature with a name", signature)
    plain = tuple(
        ModelSignature(
            plain_text(signature.name),
            tuple(map(plain_text, signature.inputs)),
            tuple(map(plain_text, signature.outputs)),
            signature.is_main is True,
        )
        for signature in signatures
    )
    names = [signature.name for signature in plain]
    if len(set(names)) != len(names):
        raise ParserError("two signatures have one name", actual=", ".join(names))
    return plain


def _wrong_type(noun: str, expected: str, answer: object) -> ParserError:
    return ParserError(f"{noun} has the wrong type", expected=expected, actual=describe(answer))
