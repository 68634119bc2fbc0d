"""The models that a model refers to, as graphs of one description."""

from __future__ import annotations

from dataclasses import replace

from armpy.nnapi.codes import is_extension
from armpy.nnapi.model_description import ModelDescription, Subgraph


class References:
    """Collects finished models, each once, with those that they refer to themselves."""

    def __init__(self) -> None:
        self._graphs: list[Subgraph] = []
        self._numbers: dict[int, int] = {}

    @property
    def graphs(self) -> tuple[Subgraph, ...]:
        """What MODEL operands stand for, by index."""
        return tuple(self._graphs)

    def add(self, description: ModelDescription) -> int:
        """Add a model; returns the index of its main graph."""
        numbers = [self._add(graph) for graph in description.referenced]
        for graph, number in zip(description.referenced, numbers, strict=True):
            self._graphs[number] = _renumbered(graph, numbers)
        main = self._add(description.main)
        self._graphs[main] = _renumbered(description.main, numbers)
        return main

    def _add(self, graph: Subgraph) -> int:
        """The index of a graph, which is added if it is not there."""
        number = self._numbers.get(id(graph))
        if number is None:
            number = self._numbers[id(graph)] = len(self._graphs)
            self._graphs.append(graph)
        return number

    def extension_codes(self, main: Subgraph) -> set[int]:
        """Codes of extensions' types and operations that a graph and these use."""
        codes = {operand.type for graph in (main, *self._graphs) for operand in graph.operands}
        codes |= {node.type for graph in (main, *self._graphs) for node in graph.operations}
        return {code for code in codes if is_extension(code)}


def _renumbered(graph: Subgraph, numbers: list[int]) -> Subgraph:
    """A graph whose MODEL operands have other numbers."""
    if all(operand.subgraph is None for operand in graph.operands):
        return graph
    return replace(
        graph,
        operands=tuple(
            operand
            if operand.subgraph is None
            else replace(operand, subgraph=numbers[operand.subgraph])
            for operand in graph.operands
        ),
    )
