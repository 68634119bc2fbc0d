"""Each family of kernels: a network for every kernel, CpuRef's answers, the same from shares."""

from __future__ import annotations

import pytest

from .families import ELSEWHERE, FAMILIES, family_network, kernel_names
from .support import ISAS, check_outputs, run_compiled, run_reference


def test_every_kernel_has_a_network_or_another_test() -> None:
    assert {family.partition(",")[0] for family in FAMILIES} | {*ELSEWHERE} == kernel_names()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_the_reference_answers_and_shares_change_no_bit(family: str) -> None:
    network, inputs = family_network(family)
    whole, shared = (run_compiled(network, inputs, ISAS[0], num_threads=count) for count in (1, 3))
    check_outputs(network, run_reference(network, inputs), whole, ISAS[0].name)
    assert [array.tobytes() for array in whole.values()] == [
        array.tobytes() for array in shared.values()
    ]
