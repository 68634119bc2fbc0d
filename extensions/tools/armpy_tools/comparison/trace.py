"""Runs a graph and shows what its tensors hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from armpy.compiler import Placement
from armpy.execution import Runtime
from armpy.graph import Graph, Value
from armpy.ops.operation import Array


class TensorTrace:
    """A loaded graph that shows what some of its tensors hold; a context that unloads it.

    Parameters
    ----------
    runtime : Runtime
    graph : Graph
    values : sequence of Value
        Of the graph; sources among them are given back as they are.

    Notes
    -----
    To load it is what takes long on a backend that compiles: a graph is loaded once for all that is
    to be known of it. Variables of the graph keep their state from sample to sample.
    """

    def __init__(self, runtime: Runtime, graph: Graph, values: Sequence[Value]) -> None:
        self._runtime = runtime
        self._sources = {value: index for index, value in enumerate(graph.inputs)}
        traced = [value for value in dict.fromkeys(values) if value not in self._sources]
        self._places = {value: place for place, value in enumerate(traced)}
        self._network_id: int | None = None
        if traced:
            names = tuple(map(str, range(len(traced))))
            shown = replace(graph, outputs=tuple(traced), output_names=names, output_shapes=())
            self._network_id = runtime.load_network(shown)

    @property
    def placement(self) -> Placement | None:
        """Return where the layers run; None if there is nothing to run."""
        if self._network_id is None:
            return None
        return self._runtime.get_network(self._network_id).placement

    def run(
        self, samples: Iterable[Sequence[Array]], values: Sequence[Value]
    ) -> Iterator[list[Array]]:
        """Return the tensors' values, sample by sample.

        Parameters
        ----------
        samples : iterable of sequence of ndarray
            Arrays for the graph's inputs, in order.
        values : sequence of Value
            Among those that are shown.

        Yields
        ------
        list of ndarray
            One per value.
        """
        for sample in samples:
            outputs: list[Array] = []
            if self._network_id is not None:
                network = self._runtime.get_network(self._network_id)
                outputs = network.run([array.copy() for array in sample])
            yield [
                sample[self._sources[value]]
                if value in self._sources
                else outputs[self._places[value]]
                for value in values
            ]

    def __enter__(self) -> TensorTrace:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._network_id is not None:
            self._runtime.unload_network(self._network_id)


def trace(
    graph: Graph, runtime: Runtime, inputs: Sequence[Array], wanted: Sequence[Value]
) -> tuple[dict[Value, Array], Placement | None]:
    """Run a graph once and show what some of its tensors hold.

    Parameters
    ----------
    graph : Graph
    runtime : Runtime
    inputs : sequence of ndarray
        In order.
    wanted : sequence of Value

    Returns
    -------
    dict of Value to ndarray
    Placement or None
        Where the layers ran; None if nothing had to run.
    """
    with TensorTrace(runtime, graph, wanted) as shown:
        (tensors,) = shown.run([inputs], wanted)
        return dict(zip(wanted, tensors, strict=True)), shown.placement
