"""Places tensors in arenas by their lifetimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from armpy.backend import ALIGNMENT_BYTES
from armpy.graph import Graph, Value
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class MemBlock:
    """One tensor's need of memory.

    Parameters
    ----------
    start, end : int
        First and last step at which it must be there, both inclusive.
    size_bytes : int
    """

    start: int
    end: int
    size_bytes: int


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


def plan_memory(graph: Graph, backend_ids: Mapping[int, BackendId]) -> MemoryPlan:
    """Place every value that lives only during an execution.

    Parameters
    ----------
    graph : Graph
        Fully shaped.
    backend_ids : mapping of int to str
        By layer id.

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
        offsets, size = pack(list(found.values()))
        plan.arena_bytes[backend_id] = size
        for value, offset in zip(found, offsets, strict=True):
            plan.offsets[value] = (backend_id, offset)
    return plan


def pack(blocks: Sequence[MemBlock]) -> tuple[list[int], int]:
    """Choose offsets so that blocks that live at the same time do not overlap.

    Returns
    -------
    offsets : list of int
        Per block, a multiple of `ALIGNMENT_BYTES`.
    size_bytes : int
        Of an arena that holds them all.

    Notes
    -----
    Greedy by size: the largest blocks first, each into the smallest gap that fits.

    References
    ----------
    Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
    algorithm 3.
    """
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size_bytes, blocks[i].start, i))
    offsets = [0] * len(blocks)
    placed: list[tuple[int, int, MemBlock]] = []
    total = 0
    for index in order:
        block = blocks[index]
        size = -(-block.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        offset = _smallest_gap(placed, block, size)
        offsets[index] = offset
        placed.append((offset, offset + size, block))
        placed.sort(key=lambda entry: entry[0])
        total = max(total, offset + size)
    return offsets, total


def _smallest_gap(placed: Sequence[tuple[int, int, MemBlock]], block: MemBlock, size: int) -> int:
    """Offset of the smallest gap among blocks that live at the same time."""
    best, best_room = None, None
    end_so_far = 0
    for begin, end, other in placed:
        if other.end < block.start or block.end < other.start:
            continue
        room = begin - end_so_far
        if room >= size and (best_room is None or room < best_room):
            best, best_room = end_so_far, room
        end_so_far = max(end_so_far, end)
    return end_so_far if best is None else best
