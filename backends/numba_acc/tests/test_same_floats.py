"""Floats that depend on the inputs alone: neither on threads nor on what else is in a batch."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region

from armpy import Network
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_testing.effort import effort

from .random_networks import TYPES, random_network
from .support import ISA_NAMES, ISAS, release_guarded, run_compiled, run_in_turn

COUNT = effort(4)
F32 = DataType.FLOAT32
BATCH = 3


def run_shared(network: Network, inputs: dict[str, Array], isa: Isa, num_threads: int) -> Array:
    """The output with the work shared among threads, one after the other."""
    graph = network.build()
    view = SubgraphView.of(graph, graph.layers)
    program = lower_region(view, isa, num_threads)
    info = graph.outputs[0].info
    output = np.zeros(info.known_shape, info.data_type.dtype)
    run_in_turn(program, isa, [*(inputs[value.name] for value in view.inputs), output], num_threads)
    return output


def bits(array: Array) -> Array:
    return array.view(np.uint32)


def of_floats(start: int, count: int) -> range:
    """Numbers of networks whose type is float32."""
    return range(len(TYPES) * start, len(TYPES) * (start + count), len(TYPES))


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_threads_change_no_bit(isa: Isa) -> None:
    failures = []
    for seed in of_floats(COUNT * ISAS.index(isa), COUNT):
        network, inputs = random_network(seed)
        alone = run_shared(network, inputs, isa, 1)
        for num_threads in (2, 5):
            shared = run_shared(network, inputs, isa, num_threads)
            if (bits(alone) != bits(shared)).any():
                failures.append((seed, num_threads))
        release_guarded()
    assert failures == []


def differing_rows(
    many: Network, one: Network, inputs: dict[str, Array], isa: Isa, num_threads: int
) -> list[int]:
    """Rows of a batch that are not those of a batch of one."""
    together = run_shared(many, inputs, isa, num_threads)
    rows = []
    for row in range(BATCH):
        part = {n: a[row : row + 1] if a.shape[0] == BATCH else a for n, a in inputs.items()}
        (alone,) = run_compiled(one, part, isa).values()
        if (bits(together[row : row + 1]) != bits(alone)).any():
            rows.append(row)
    return rows


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_what_else_is_in_a_batch_changes_no_bit(isa: Isa) -> None:
    failures = []
    for seed in of_floats(COUNT * ISAS.index(isa), COUNT):
        many, inputs = random_network(seed, BATCH)
        single, _ = random_network(seed, 1)
        if any(array.ndim == 1 and len(array) == BATCH for array in inputs.values()):
            continue  # a vector of channels that looks like a batch
        if rows := differing_rows(many, single, inputs, isa, 1 + seed // 4 % 2):
            failures.append((seed, rows))
        release_guarded()
    assert failures == []
