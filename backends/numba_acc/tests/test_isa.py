from __future__ import annotations

import pytest
from armpy_numba_acc.machine.isa import NAMES, make_isa

X86 = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "portable"])
def test_what_a_virtual_machine_hides_is_not_used_though_the_model_has_it(name: str) -> None:
    isa = make_isa(name, X86, "znver4", frozenset(), frozenset({"vaes", "gfni"}))
    assert isa.features.split(",")[:2] == ["-gfni", "-vaes"]


def test_portable_code_is_for_the_oldest_processor_whatever_this_one_lacks() -> None:
    isa = make_isa("portable", X86, "znver4", frozenset({"avx2"}), frozenset({"gfni"}))
    assert (isa.cpu, isa.features) == ("x86-64", "")
