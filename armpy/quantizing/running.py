"""Runs a graph on data and shows what its tensors hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from armpy.errors import InvalidArgumentError
from armpy.graph import Graph, Value
from armpy.ops.operation import Array
from armpy.runtime import Runtime
from armpy.runtime.tensors import as_input

Sample = Mapping[str, object]
"""One array for each input, by name."""


def watched(
    runtime: Runtime, graph: Graph, samples: Iterable[Sequence[Array]], values: Sequence[Value]
) -> Iterator[list[Array]]:
    """What some tensors hold, sample by sample.

    Parameters
    ----------
    runtime : Runtime
    graph : Graph
    samples : iterable of sequence of ndarray
        Arrays for the graph's inputs, in order.
    values : sequence of Value
        Of the graph, no constants; inputs among them are given back as they are.

    Yields
    ------
    list of ndarray
        One per value.
    """
    sources = {value: index for index, value in enumerate(graph.inputs)}
    made = [value for value in values if value not in sources]
    names = tuple(map(str, range(len(made))))
    shown = replace(graph, outputs=tuple(made), output_names=names)
    if not made:
        for sample in samples:
            yield [sample[sources[value]] for value in values]
        return
    network_id = runtime.load_network(shown)
    try:
        network = runtime.get_network(network_id)
        for sample in samples:
            found = iter(network.run([array.copy() for array in sample]))
            yield [sample[sources[value]] if value in sources else next(found) for value in values]
    finally:
        runtime.unload_network(network_id)


def in_order(graph: Graph, sample: Sample) -> list[Array]:
    """The arrays of a sample in the order of a graph's inputs, checked.

    Raises
    ------
    InvalidArgumentError
        If one is missing, there is one too many, or one does not fit.
    """
    names = [value.name for value in graph.inputs]
    if set(sample) != set(names):
        raise InvalidArgumentError(
            "the data do not have the model's inputs",
            where="data",
            expected=", ".join(f"'{name}'" for name in names),
            actual=", ".join(f"'{name}'" for name in sample) or "nothing",
        )
    return [as_input(value.name, value.info, sample[value.name]) for value in graph.inputs]
