"""Verification that a graph is well formed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from armpy.errors import GraphValidationError
from armpy.graph.graph import Graph, Value


def verify_graph(graph: Graph) -> None:
    """Check order, single assignment, ids and names.

    Raises
    ------
    GraphValidationError
        If a value is read before it is written (so also where there is a cycle), written twice, or
        unknown; if ids, names or variables' keys repeat; if a constant's elements do not have the
        shape and dtype of its info.
    """
    for kind, noun, notes, values in (
        ("outputs", "names", graph.output_names, graph.outputs),
        ("inputs", "default shapes", graph.default_shapes, graph.inputs),
        ("outputs", "declared shapes", graph.output_shapes, graph.outputs),
    ):
        if len(notes) != len(values):
            raise GraphValidationError(
                f"the numbers of {kind} and of their {noun} differ",
                where="graph",
                expected=f"{len(values)} {noun}",
                actual=str(len(notes)),
            )
    written: set[Value] = set(graph.sources)
    if len(written) != len(graph.sources):
        raise GraphValidationError("a value is the source of two inputs", where="graph")
    for layer in graph.layers:
        for index, value in enumerate(layer.inputs):
            if value is not None and value.data is None and value not in written:
                raise GraphValidationError(
                    f"input {index} is read before it is written",
                    where=layer.where,
                    expected="a graph input, a constant, or an output of an earlier layer",
                    actual=repr(value),
                )
        for value in layer.outputs:
            if value in written:
                raise GraphValidationError(f"{value!r} is written twice", where=layer.where)
            written.add(value)
    for value in graph.results:
        if value.data is None and value not in written:
            raise GraphValidationError("a graph output is never written", actual=repr(value))
    _verify_unique([value.id for value in graph.values()], "value ids")
    _verify_unique([layer.id for layer in graph.layers], "layer ids")
    _verify_unique([value.name for value in graph.inputs], "input names")
    _verify_unique(graph.output_names, "output names")
    keys = [variable.key for variable in graph.variables if variable.key is not None]
    _verify_unique(keys, "keys of variables")
    for value in graph.values():
        _verify_constant(value)


def _verify_unique(items: Iterable[Hashable], noun: str) -> None:
    """Check that nothing occurs twice."""
    repeated = sorted(str(item) for item, count in Counter(items).items() if count > 1)
    if repeated:
        raise GraphValidationError(f"{noun} repeat: {', '.join(repeated)}", where="graph")


def _verify_constant(value: Value) -> None:
    """Check that a constant's elements are what its info says."""
    data, info = value.data, value.info
    if data is None:
        return
    if data.shape != info.shape or data.dtype != info.data_type.dtype or not info.is_constant:
        raise GraphValidationError(
            f"the elements of constant '{value.name}' do not match its info",
            expected=f"{info} marked as constant",
            actual=f"{data.dtype} {data.shape}",
        )
