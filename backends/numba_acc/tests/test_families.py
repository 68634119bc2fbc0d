"""Each family of kernels: every kernel has a network, and gives CpuRef's answers with it."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy.graph import SubgraphView
from armpy_testing.effort import IS_CAMPAIGN

from .families import ELSEWHERE, FAMILIES, family_network, kernel_names
from .support import (
    ISAS,
    check_against_reference,
    run_in_turn,
    run_reference,
)


def test_every_kernel_has_a_network_or_another_test() -> None:
    assert {family.partition(",")[0] for family in FAMILIES} | {*ELSEWHERE} == kernel_names()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("family", FAMILIES)
def test_shares_change_no_bit(family: str) -> None:
    network, inputs = family_network(family)
    graph = network.build()
    view = SubgraphView.of(graph, graph.layers)
    results = []
    for num_threads in (1, 3):
        outputs = [np.zeros(v.info.known_shape, v.info.data_type.dtype) for v in view.outputs]
        program = lower_region(view, ISAS[0], num_threads)
        run_in_turn(
            program, ISAS[0], [*(inputs[v.name] for v in view.inputs), *outputs], num_threads
        )
        results.append([output.tobytes() for output in outputs])
    assert results[0] == results[1]


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_the_reference_answers(family: str) -> None:
    network, inputs = family_network(family)
    expected = run_reference(network, inputs)
    # The family's own tests run on the other ones.
    for isa in ISAS if IS_CAMPAIGN else ISAS[:1]:
        check_against_reference(network, inputs, isa, expected)
