"""Optimised network: a graph whose every layer has its backend, as it is inspected and kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from armpy.backend import OptionValues
from armpy.compiler.memory.memory_copies import PlannedImport
from armpy.compiler.memory.plan import MemoryPlan
from armpy.compiler.placement import Placement
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value, graphs_of, nested_graphs
from armpy.ops.control_flow import While
from armpy.ops.operation import Operation
from armpy.tensor import format_shape
from armpy.types import BackendId


@dataclass(frozen=True, eq=False)
class OptimizedNetwork:
    """A graph whose every layer has its backend.

    Parameters
    ----------
    graph : Graph
        As it is executed, with what backends have put in the place of layers, and copies.
    backend_ids : dict of int to str
        By layer id of `graph`.
    memory : MemoryPlan
        Empty as long as a shape is not known.
    source : Graph
        The graph assigned to backends, after the optimiser's passes.
    assignment : dict of int to str
        Backend by layer id of `source`.
    origins : dict of int to tuple of int
        By layer id of `graph`, ids of the layers of `source` that it stands for.
    imports : dict of (Value, str) to PlannedImport
        By value and backend id, what layers of the backend read in another one's memory.
    model_options : mapping of str to mapping
        Options of scope MODEL by backend id that backends have gone by.

    Notes
    -----
    It is for the input shapes that it was made for: those of the network, or given to
    `armpy.optimize`. `armpy.Runtime.load_network` loads it.

    Examples
    --------
    >>> optimized = armpy.optimize(network, ["NumbaAcc", "CpuRef"])  # doctest: +SKIP
    >>> print(optimized)                                            # doctest: +SKIP
    >>> optimized.save("network.armpy")                             # doctest: +SKIP

    References
    ----------
    Arm NN IOptimizedNetwork.
    """

    graph: Graph
    backend_ids: dict[int, BackendId]
    memory: MemoryPlan
    placement: Placement
    source: Graph
    assignment: dict[int, BackendId]
    origins: dict[int, tuple[int, ...]] = field(default_factory=dict)
    imports: dict[tuple[Value, BackendId], PlannedImport] = field(default_factory=dict)
    model_options: Mapping[BackendId, OptionValues] = field(default_factory=dict)

    def backend_of(self, layer: Layer) -> BackendId:
        """Id of the backend that executes a layer of `graph`."""
        return self.backend_ids[layer.id]

    @cached_property
    def looping(self) -> frozenset[int]:
        """Ids of the executed layers that are a While, contain one, or were compiled from one."""
        loops = {layer.id for layer in self.source.layers if _has_loop(layer.operation)}
        # By origins too, as a backend may have compiled a loop into one part with its neighbours.
        return frozenset(
            layer.id
            for layer in self.graph.layers
            if _has_loop(layer.operation) or not loops.isdisjoint(self.origins.get(layer.id, ()))
        )

    def to_dot(self) -> str:
        """The executed graph in Graphviz's ``.dot`` language, each layer with its backend.

        References
        ----------
        Arm NN IOptimizedNetwork::SerializeToDot.
        """
        from armpy.graph.dump import to_dot  # noqa: PLC0415 - few draw it

        return to_dot(self.graph, self.backend_ids)

    def __str__(self) -> str:
        """Every layer with its backend, and every planned tensor."""
        lines = [str(self.placement), ""]
        for layer in self.graph.layers:
            shapes = ", ".join(format_shape(value.info.shape) for value in layer.outputs)
            line = f"{layer.id:6} {self.backend_of(layer):12} {layer.where} -> {shapes}"
            lines.append(line + (f" = {', '.join(layer.origins)}" if layer.origins else ""))
        for arena, size_bytes in self.memory.arenas.items():
            lines += ["", f"{arena.backend_id} ({arena.factory_id}): {size_bytes} bytes"]
            for value, tensor in self.memory.tensors.items():
                if tensor.arena == arena:
                    first, last = tensor.lifetime
                    lines.append(
                        f"  {tensor.offset_bytes:10} + {value.info.size_bytes:<10} "
                        f"steps {first} to {last}  {value.name}"
                    )
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file; see ``docs/how_to/optimized_networks.md`` for the format.

        Raises UnimplementedError if an operation is not one of armpy's own, or a variable's key
        cannot be written.

        What backends have compiled is not in it: the file says which layers they compiled, and
        they do so again when the network is loaded.
        """
        from armpy.compiler.files.writing import write_network  # noqa: PLC0415 - few save it

        write_network(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OptimizedNetwork:
        """Read what `save` has written.

        Raises ParserError if the file cannot be read, is damaged, or of another version.

        It can be inspected as it was saved, but for the programs in `PreCompiled` layers, of which
        there are descriptions only.
        """
        from armpy.compiler.files.reading import read_network  # noqa: PLC0415 - few load it

        return read_network(path, OptimizedNetwork)


def _has_loop(operation: Operation) -> bool:
    """Return whether an operation is a While, or runs one at any depth."""
    if isinstance(operation, While):
        return True
    graphs = (body for _, graph in graphs_of(operation) for body in (graph, *nested_graphs(graph)))
    return any(isinstance(layer.operation, While) for graph in graphs for layer in graph.layers)
