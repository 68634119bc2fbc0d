"""Products of bytes by a matrix unit (AMX) agree with CpuRef."""

from __future__ import annotations

import pytest
from armpy_numba_acc.kernels import convolution_u8_matrix
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.matrix_unit import may_use_matrix_unit
from armpy_numba_acc.passes.region import lower_region

from armpy.graph import SubgraphView
from backends.numba_acc.tests.support import check_against_reference
from backends.numba_acc.tests.test_weighted_u8 import CONVOLUTIONS, convolution


@pytest.fixture
def isa() -> Isa:
    (*found,) = (isa for isa in host_isas() if isa.has_matrix_unit)
    if not found or not may_use_matrix_unit():
        pytest.skip("this processor has no matrix unit, or the system keeps it from us")
    return found[0]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, isa: Isa) -> None:
    net, inputs = convolution(CONVOLUTIONS[name])
    check_against_reference(net, inputs, isa)


def test_the_kernel_is_the_matrix_unit_s(isa: Isa) -> None:
    graph = convolution(CONVOLUTIONS["pointwise, odd"])[0].build()
    program = lower_region(SubgraphView.of(graph, graph.layers), isa, 1)
    assert "convolution_u8_matrix" in {kernel.name for kernel in program.kernels}


def test_code_has_the_unit_s_instructions_wherever_it_is_compiled() -> None:
    amx = make_isa("avx512amx", "x86_64-unknown-linux-gnu", "sapphirerapids", frozenset())
    function = convolution_u8_matrix.make(amx, 16, 2, 0, 1, 0, 0, 0, 0, 0)
    text = compile_assembly(function, "kernel", amx)
    assert "ldtilecfg" in text
    assert "tdpbusd" in text
    assert text.count("tilestored") == 2
    assert text.count("tilerelease") == 1


def test_the_unit_is_never_used_unasked() -> None:
    assert not host_isas()[0].has_matrix_unit
