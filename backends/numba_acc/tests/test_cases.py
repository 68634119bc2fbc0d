"""The conformance kit's cases agree with CpuRef on every instruction set.

Whole numbers are equal, floats close; every other case is computed in the shares of two threads.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.support import support_of_constants

from armpy_conformance.case import Case
from armpy_conformance.cases import operation_cases
from armpy_conformance.cases.control_flow import control_flow_cases

from .support import (
    PRODUCT_ISAS,
    PRODUCT_NAMES,
    check_outputs,
    refusals,
    release_guarded,
    run_compiled,
    run_reference,
    without_subnormals,
)

PARTS = 24
"""The cases are tested in so many parts: one by default, all before landing."""

by_isa = pytest.mark.parametrize("isa", PRODUCT_ISAS, ids=PRODUCT_NAMES)


@by_isa
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
def test_cases_agree_with_the_reference(part: int, isa: Isa) -> None:
    cases = operation_cases()[part::PARTS]
    assert [*problems_of(cases[::2], isa, 0), *problems_of(cases[1::2], isa, 2)] == []


@pytest.mark.slow
@by_isa
def test_branches_and_loops_agree_with_the_reference(isa: Isa) -> None:
    assert problems_of(control_flow_cases(), isa, 0) == []


def problems_of(cases: Iterable[Case], isa: Isa, num_threads: int) -> list[str]:
    """Differences from CpuRef of the cases that NumbaAcc takes."""
    problems = []
    for case in cases:
        graph, inputs = case.graph(), case.feeds()
        if refusals(graph) or not all(map(support_of_constants, graph.layers)):
            continue
        with np.errstate(all="ignore"):
            expected = run_reference(graph, without_subnormals(inputs))
        actual = run_compiled(graph, inputs, isa, num_threads=num_threads)
        try:
            check_outputs(graph, expected, actual, isa.name)
        except AssertionError as error:
            problems.append(f"{case.id}: {error}")
        release_guarded()
    return problems
