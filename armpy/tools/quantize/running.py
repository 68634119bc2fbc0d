"""Runs a graph on data and shows what its tensors hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime
from armpy.execution.arrays.conversion import as_input
from armpy.graph import Graph, Value
from armpy.ops.operation import Array

Sample = Mapping[str, object]
"""One array for each input, by name."""


class Watched:
    """A loaded graph that shows what some of its tensors hold; a context that unloads it.

    Parameters
    ----------
    runtime : Runtime
    graph : Graph
    values : sequence of Value
        Of the graph, no constants; inputs among them are given back as they are.

    Notes
    -----
    To load it is what takes long on a backend that compiles: a graph is loaded once for all that is
    to be known of it.
    """

    def __init__(self, runtime: Runtime, graph: Graph, values: Sequence[Value]) -> None:
        self._runtime = runtime
        self._sources = {value: index for index, value in enumerate(graph.inputs)}
        made = [value for value in dict.fromkeys(values) if value not in self._sources]
        self._places = {value: place for place, value in enumerate(made)}
        self._network_id: int | None = None
        if made:
            names = tuple(map(str, range(len(made))))
            shown = replace(graph, outputs=tuple(made), output_names=names)
            self._network_id = runtime.load_network(shown)

    def run(
        self, samples: Iterable[Sequence[Array]], values: Sequence[Value]
    ) -> Iterator[list[Array]]:
        """What tensors hold, sample by sample.

        Parameters
        ----------
        samples : iterable of sequence of ndarray
            Arrays for the graph's inputs, in order.
        values : sequence of Value
            Among those that are watched.

        Yields
        ------
        list of ndarray
            One per value.
        """
        for sample in samples:
            found: list[Array] = []
            if self._network_id is not None:
                network = self._runtime.get_network(self._network_id)
                found = network.run([array.copy() for array in sample])
            yield [
                sample[self._sources[value]]
                if value in self._sources
                else found[self._places[value]]
                for value in values
            ]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._network_id is not None:
            self._runtime.unload_network(self._network_id)


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
