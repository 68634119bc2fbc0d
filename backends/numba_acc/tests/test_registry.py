from __future__ import annotations

from importlib import import_module

import pytest
from armpy_numba_acc.program.registry import FAMILIES, lowering_of

from armpy import ops


@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_operations_are_those_of_its_module(family: str) -> None:
    lowerings = import_module(f"armpy_numba_acc.lowering.{family}").LOWERINGS
    assert sorted(kind.__name__ for kind in lowerings) == sorted(FAMILIES[family])


def test_no_operation_is_in_two_families() -> None:
    names = [name for family in FAMILIES.values() for name in family]
    assert len(set(names)) == len(names)


def test_an_operation_that_only_has_the_name_is_not_lowered() -> None:
    class Softmax(ops.Rank):
        pass

    assert lowering_of(ops.Softmax()) is not None
    assert lowering_of(Softmax()) is None
    assert lowering_of(ops.HashtableLookup()) is None
