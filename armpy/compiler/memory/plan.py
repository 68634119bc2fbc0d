"""Memory planning: places tensors in arenas by their lifetimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from armpy.backend import (
    ALIGNMENT_BYTES,
    HOST_FACTORY_ID,
    IMemoryOptimizerStrategy,
    Lifetime,
    MemBlock,
)
from armpy.compiler.memory.memory_copies import Factories
from armpy.compiler.memory.strategies import DEFAULT_STRATEGY, pack
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy.ops.backend_internal import PreCompiled
from armpy.profiling import phase
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class ArenaId:
    """One of the arenas of an execution."""

    backend_id: BackendId  # whose layers write the tensors in it
    factory_id: str  # which of its factories makes their handles


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """Place and lifetime of one tensor in an arena."""

    arena: ArenaId
    offset_bytes: int  # from the arena's beginning
    lifetime: Lifetime  # first and last step at which its elements are needed, both inclusive


@dataclass(frozen=True)
class MemoryPlan:
    """Places of tensors in arenas while a network runs."""

    # Every value that a layer writes and the caller does not get, except strings.
    tensors: dict[Value, PlannedTensor] = field(default_factory=dict)
    # Size of each in bytes; their sum is the working memory of one execution.
    arenas: dict[ArenaId, int] = field(default_factory=dict)

    @property
    def arena_bytes(self) -> dict[BackendId, int]:
        """Size of each backend's arenas together."""
        sizes: dict[BackendId, int] = {}
        for arena, size in self.arenas.items():
            sizes[arena.backend_id] = sizes.get(arena.backend_id, 0) + size
        return sizes


@phase("plan memory")
def plan_memory(
    graph: Graph,  # fully shaped
    backend_ids: Mapping[int, BackendId],  # by layer id
    # How each backend's arenas are packed; the default strategy where missing.
    strategies: Mapping[BackendId, IMemoryOptimizerStrategy] | None = None,
    # What makes each value's handle; the host's factory where missing.
    factory_ids: Mapping[Value, str] | None = None,
    # By backend id, those that declare how tensors lie.
    factories: Mapping[BackendId, Factories] | None = None,
) -> MemoryPlan:
    """Place every value that lives only during an execution.

    Graph inputs, results and constants are not placed: they live in the caller's memory,
    in the loaded network's, or in the model file's. Neither are strings.
    """
    last_use = {
        value: index
        for index, layer in enumerate(graph.layers)
        # Outputs as well: an unread one is written, and needs a place in its own step.
        for value in (*layer.inputs, *layer.outputs)
        if value is not None
    }
    results = set(graph.results)
    factory_ids = factory_ids or {}
    blocks: dict[ArenaId, dict[Value, MemBlock]] = {}
    for index, layer in enumerate(graph.layers):
        for value in layer.outputs:
            # Strings are Python objects: they have no fixed size, and an arena's bytes hold none.
            if value not in results and not value.info.data_type.is_string:
                factory_id = factory_ids.get(value, HOST_FACTORY_ID)
                # One arena for each factory, as only that one makes handles over its memory.
                arena = ArenaId(backend_ids[layer.id], factory_id)
                block = MemBlock(index, last_use[value], value.info.size_bytes)
                blocks.setdefault(arena, {})[value] = block
    plan = MemoryPlan()
    for arena, arena_blocks in blocks.items():
        strategy = (strategies or {}).get(arena.backend_id, DEFAULT_STRATEGY)
        own = (factories or {}).get(arena.backend_id, ())
        blocks_of = (f.block_bytes for f in own if f.factory_id == arena.factory_id)
        block_bytes = next(blocks_of, ALIGNMENT_BYTES)
        offsets, size = pack(list(arena_blocks.values()), strategy, block_bytes)
        plan.arenas[arena] = size
        for (value, block), offset in zip(arena_blocks.items(), offsets, strict=True):
            plan.tensors[value] = PlannedTensor(arena, offset, (block.start, block.end))
    return plan


def working_memory(
    graph: Graph, backend_ids: Mapping[int, BackendId], memory: MemoryPlan
) -> dict[BackendId, int]:
    """Bytes that one execution needs, by backend: arenas, and programs' own memory."""
    sizes = dict(memory.arena_bytes)
    for layer in graph.layers:
        operation = layer.operation
        if isinstance(operation, PreCompiled) and operation.working_bytes:
            backend_id = backend_ids[layer.id]
            sizes[backend_id] = sizes.get(backend_id, 0) + operation.working_bytes
    return sizes
