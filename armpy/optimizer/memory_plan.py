"""Memory planning: places tensors in arenas by their lifetimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from armpy.backend import IMemoryOptimizerStrategy, MemBlock
from armpy.graph import Graph, Value
from armpy.optimizer.memory_strategies import DEFAULT_STRATEGY, pack
from armpy.records import dataclass
from armpy.types import BackendId


@dataclass(frozen=True)
class MemoryPlan:
    """Where each tensor lies while a network runs.

    Parameters
    ----------
    offsets : dict of Value to (str, int)
        Arena's backend, and byte offset in it, of every value that a layer writes and the
        caller does not get.
    arena_bytes : dict of str to int
        Size of each backend's arena; their sum is the working memory of one execution.
    """

    offsets: dict[Value, tuple[BackendId, int]] = field(default_factory=dict)
    arena_bytes: dict[BackendId, int] = field(default_factory=dict)


def plan_memory(
    graph: Graph,
    backend_ids: Mapping[int, BackendId],
    strategies: Mapping[BackendId, IMemoryOptimizerStrategy] | None = None,
) -> MemoryPlan:
    """Place every value that lives only during an execution.

    Parameters
    ----------
    graph : Graph
        Fully shaped.
    backend_ids : mapping of int to str
        By layer id.
    strategies : mapping of str to IMemoryOptimizerStrategy, optional
        How each backend's arena is packed; the default strategy where missing.

    Notes
    -----
    Graph inputs, results and constants are not placed: they live in the caller's memory,
    in the loaded network's, or in the model file's.
    """
    last_use = {
        value: index
        for index, layer in enumerate(graph.layers)
        for value in (*layer.inputs, *layer.outputs)
        if value is not None
    }
    results = set(graph.results)
    blocks: dict[BackendId, dict[Value, MemBlock]] = {}
    for index, layer in enumerate(graph.layers):
        for value in layer.outputs:
            if value not in results:
                block = MemBlock(index, last_use[value], value.info.size_bytes)
                blocks.setdefault(backend_ids[layer.id], {})[value] = block
    plan = MemoryPlan()
    for backend_id, found in blocks.items():
        strategy = (strategies or {}).get(backend_id, DEFAULT_STRATEGY)
        offsets, size = pack(list(found.values()), strategy)
        plan.arena_bytes[backend_id] = size
        for value, offset in zip(found, offsets, strict=True):
            plan.offsets[value] = (backend_id, offset)
    return plan
