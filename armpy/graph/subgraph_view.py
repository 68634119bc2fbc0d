"""A part of a graph, as it is shown to a backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from armpy.core.dataclass import dataclass
from armpy.graph.graph import Graph, Layer, Value, consumers_of


@dataclass(frozen=True, eq=False)
class SubgraphView:
    """Some layers of a graph with the values that cross their edge.

    References
    ----------
    Arm NN SubgraphView.
    """

    layers: tuple[Layer, ...]  # in the graph's order, in which they can run
    inputs: tuple[Value, ...]  # read by the layers, and neither written by them nor constant
    outputs: tuple[Value, ...]  # written by the layers and read by others, or the graph's results

    @cached_property
    def consumers(self) -> Mapping[Value, tuple[Layer, ...]]:
        """The layers of the view that read each value, in order; without what none reads."""
        return consumers_of(self.layers)

    @cached_property
    def producers(self) -> Mapping[Value, Layer]:
        """The layer of the view that writes each value; without what none writes."""
        return {value: layer for layer in self.layers for value in layer.outputs}

    @classmethod
    def of(cls, graph: Graph, layers: Iterable[Layer]) -> SubgraphView:
        """The view of some layers of `graph`; each is counted once, others are left out."""
        positions = graph.positions
        # A graph may have as many views as layers, so none may look at the whole of it.
        ordered = tuple(sorted(positions.keys() & set(layers), key=positions.__getitem__))
        chosen = frozenset(ordered)

        def is_read_outside(value: Value) -> bool:
            readers = graph.consumers.get(value, ())
            return value in graph.result_set or any(reader not in chosen for reader in readers)

        return cls._of_layers(ordered, is_read_outside)

    def part(self, layers: Iterable[Layer]) -> SubgraphView:
        """The view of some of these layers, for a backend that divides the offered ones."""
        chosen = set(layers)
        ordered = tuple(layer for layer in self.layers if layer in chosen)
        outside = set(self.outputs)
        outside.update(v for layer in self.layers if layer not in chosen for v in layer.inputs if v)
        return self._of_layers(ordered, outside.__contains__)

    @classmethod
    def _of_layers(
        cls, layers: tuple[Layer, ...], is_read_outside: Callable[[Value], bool]
    ) -> SubgraphView:
        """The view of layers in order."""
        written = {value for layer in layers for value in layer.outputs}
        inputs = dict.fromkeys(
            value
            for layer in layers
            for value in layer.inputs
            if value is not None and value.data is None and value not in written
        )
        outputs = filter(is_read_outside, (v for layer in layers for v in layer.outputs))
        return cls(layers, tuple(inputs), tuple(outputs))

    def is_convex_in(self, graph: Graph | SubgraphView) -> bool:
        """Return whether no path leaves the view and comes back into it.

        A part that is convex in a convex subgraph is so in the whole graph.
        """
        chosen = set(self.layers)
        tainted: set[Value] = set()
        outside: set[Value] = set()
        for layer in graph.layers:
            reads_outside = any(value in outside for value in layer.inputs if value is not None)
            if layer in chosen:
                if reads_outside:
                    return False
                tainted.update(layer.outputs)
            elif reads_outside or any(v in tainted for v in layer.inputs if v is not None):
                outside.update(layer.outputs)
        return True


def view_of_layers(layers: Sequence[Layer]) -> SubgraphView:
    """The view of ordered layers without their graph: outputs are values that none reads."""
    read = consumers_of(layers)
    return SubgraphView._of_layers(tuple(layers), lambda value: value not in read)


def select_subgraphs(graph: Graph, key: Callable[[Layer], Hashable | None]) -> list[SubgraphView]:
    """Group connected layers of equal key into convex subgraphs.

    Parameters
    ----------
    key : callable
        Layers with equal keys may share a subgraph; a layer whose key is None is left out.

    Returns
    -------
    list of SubgraphView
        Ordered by their first layers. No path leaves a subgraph and returns to it.

    Notes
    -----
    One pass in topological order. Each group knows the groups that it depends on. A layer
    joins a group of one of its producers unless another of its producers depends on that
    group, which would close a cycle between groups; all groups that it may join are merged
    into one, if they do not depend on each other through a third.

    References
    ----------
    Arm NN SubgraphViewSelector.
    """
    groups = _Groups()
    members: dict[Layer, int] = {}
    for layer in graph.layers:
        parents = {
            members[graph.producers[value]]
            for value in layer.inputs
            if value is not None and value in graph.producers
        }
        members[layer] = groups.place(key(layer), {groups.find(p) for p in parents})
    by_group: dict[int, list[Layer]] = {}
    for layer, group in members.items():
        by_group.setdefault(groups.find(group), []).append(layer)
    return [
        SubgraphView.of(graph, layers)
        for group, layers in by_group.items()
        if groups.keys[group] is not None
    ]


class _Groups:
    """Disjoint sets of layers, each with its key and the groups it depends on.

    Sets of groups are integers with a bit per group, which makes unions and tests cheap
    however many groups there are. A merged group's bit stays valid: it is one of the
    members of the group that it went into.
    """

    def __init__(self) -> None:
        self.keys: list[Hashable | None] = []
        self._parent: list[int] = []
        self._members: list[int] = []
        self._needs: list[int] = []
        self._roots: dict[int, None] = {}

    def find(self, group: int) -> int:
        """The group that stands for a merged one."""
        while self._parent[group] != group:
            self._parent[group] = self._parent[self._parent[group]]
            group = self._parent[group]
        return group

    def place(self, key: Hashable | None, parents: set[int]) -> int:
        """Put a layer with the given parents into a group, old or new."""
        needed = 0
        for parent in parents:
            needed |= self._needs[parent]
        joinable = [
            group
            for group in sorted(parents)
            if key is not None and self.keys[group] == key and not needed & self._members[group]
        ]
        for parent in parents:
            needed |= self._members[parent]
        if not joinable:
            return self._new(key, needed)
        target = joinable[0]
        before = self._members[target], self._needs[target]
        for group in joinable[1:]:
            self._parent[group] = target
            self._members[target] |= self._members[group]
            self._needs[target] |= self._needs[group]
            del self._roots[group]
        self._needs[target] = (self._needs[target] | needed) & ~self._members[target]
        if (self._members[target], self._needs[target]) != before:
            self._spread(target)
        return target

    def _spread(self, target: int) -> None:
        """Let every group that depends on `target` depend on what it needs as well."""
        members, needs = self._members[target], self._needs[target]
        for group in self._roots:
            if self._needs[group] & members:
                self._needs[group] |= members | needs

    def _new(self, key: Hashable | None, needed: int) -> int:
        """Open a group for a layer."""
        group = len(self.keys)
        self.keys.append(key)
        self._parent.append(group)
        self._members.append(1 << group)
        self._needs.append(needed)
        self._roots[group] = None
        return group
