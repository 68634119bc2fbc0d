"""The models that a model refers to, as graphs of one description."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from armpy.backend.extension import LARGEST_EXTENSION_ID
from armpy_nnapi.codes import EXTENSION_PREFIX_SHIFT, is_extension
from armpy_nnapi.description.model_description import ModelDescription, Subgraph


class References:
    """Collects finished models with those that they refer to themselves, equal ones once.

    Notes
    -----
    Graphs are equal if they say the same of the same buffers. A graph's MODEL operands mean
    other graphs in another description, so their meaning here is part of the comparison.
    Buffers are known by their ids, which no others can get, as the graphs keep the buffers.
    """

    def __init__(self) -> None:
        self._graphs: list[Subgraph] = []
        self._numbers: dict[Hashable, int] = {}

    @property
    def graphs(self) -> tuple[Subgraph, ...]:
        """The graphs that MODEL operands stand for, by index."""
        return tuple(self._graphs)

    def add(
        self, description: ModelDescription, prefix_of: Callable[[str], int] | None = None
    ) -> int:
        """Add a finished model.

        Parameters
        ----------
        prefix_of : callable, optional
            Gives the prefix that an extension of this name has here; the model's own if left out.

        Returns
        -------
        int
            The index of its main graph.
        """
        numbers: dict[int, int] = {}
        # Prefixes are in order of first use, which is another one in each manager.
        prefixes = {
            own: prefix
            for own, name in description.extensions.items()
            if prefix_of is not None and (prefix := prefix_of(name)) != own
        }

        def number_of(index: int) -> int:
            # Each once, however many operations and graphs refer to it.
            if index not in numbers:
                graph = _with_prefixes(description.referenced[index], prefixes)
                numbers[index] = self._add(_renumbered(graph, number_of))
            return numbers[index]

        return self._add(_renumbered(_with_prefixes(description.main, prefixes), number_of))

    def _add(self, graph: Subgraph) -> int:
        """The index of a graph with this collection's numbers, which is added if it is new."""
        key = _key(graph)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._graphs)
            self._graphs.append(graph)
        return number

    def extension_codes(self, main: Subgraph) -> set[int]:
        """Codes of extensions' types and operations that a graph and these use."""
        codes = {operand.type for graph in (main, *self._graphs) for operand in graph.operands}
        codes |= {node.type for graph in (main, *self._graphs) for node in graph.operations}
        return {code for code in codes if is_extension(code)}


def _key(graph: Subgraph) -> Hashable:
    """A key that is the same for equal graphs."""
    operands = tuple((replace(operand, data=None), id(operand.data)) for operand in graph.operands)
    return operands, graph.operations, graph.inputs, graph.outputs


def _renumbered(graph: Subgraph, number_of: Callable[[int], int]) -> Subgraph:
    """Give the MODEL operands of a graph other numbers."""
    return replace(
        graph,
        operands=tuple(
            operand
            if operand.subgraph is None
            else replace(operand, subgraph=number_of(operand.subgraph))
            for operand in graph.operands
        ),
    )


def _with_prefixes(graph: Subgraph, prefixes: Mapping[int, int]) -> Subgraph:
    """Change the prefixes of extensions in a graph, all at once."""
    if not prefixes:
        return graph

    def code(own: int) -> int:
        prefix = prefixes.get(own >> EXTENSION_PREFIX_SHIFT)
        number = own & LARGEST_EXTENSION_ID
        return own if prefix is None else prefix << EXTENSION_PREFIX_SHIFT | number

    # One by one, a new prefix could be taken for an old one and changed again.
    return replace(
        graph,
        operands=tuple(replace(operand, type=code(operand.type)) for operand in graph.operands),
        operations=tuple(replace(node, type=code(node.type)) for node in graph.operations),
    )
