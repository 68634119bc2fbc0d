"""Each family of kernels: every kernel has a network, and gives CpuRef's answers with it."""

from __future__ import annotations

import pytest

from backends.numba_acc.tests.families import ELSEWHERE, FAMILIES, family_network, kernel_names
from backends.numba_acc.tests.support import ISAS, check_against_reference, run_reference
from tests.support.effort import effort


def test_every_kernel_has_a_network_or_another_test() -> None:
    assert {family.partition(",")[0] for family in FAMILIES} | {*ELSEWHERE} == kernel_names()


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_the_reference_answers(family: str) -> None:
    network, inputs = family_network(family)
    expected = run_reference(network, inputs)
    # The family's own tests run on the other ones.
    for isa in ISAS[: effort(1, len(ISAS))]:
        check_against_reference(network, inputs, isa, expected)
