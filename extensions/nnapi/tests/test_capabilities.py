"""Capabilities of devices, by NNAPI's types of operands."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.types import DataType
from armpy_nnapi import Capabilities, OperandCode
from armpy_nnapi.capabilities import capabilities_from
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration

from .nnapi_models import devices_of

UNKNOWN = PerformanceFigures(*[float(np.finfo(np.float32).max)] * 2)
FIGURES = DeviceFigures(
    {DataType.FLOAT32: PerformanceFigures(0.5, 0.25), DataType.QSYMM_S8: PerformanceFigures(2, 3)},
    {DataType.SIGNED32: PerformanceFigures(4, 5)},
    {"com.acme.math.QUANT64": PerformanceFigures(6, 7)},
    relaxed_tensor=PerformanceFigures(0.125, 0.125),
    if_=PerformanceFigures(8, 9),
)


def capabilities_of(figures: DeviceFigures) -> Capabilities:
    """Those of a device that declares some figures."""
    with devices_of(ScriptedBackend(declared=declaration(figures=figures))) as manager:
        return manager.devices[0].capabilities


@pytest.mark.parametrize("names", ["avx2", "avx2 avx512vnni"])
def test_the_accelerator_that_armpy_ships_has_figures_of_every_type(names: str) -> None:
    features = set(names.split())
    pytest.importorskip("armpy_numba_acc")
    from armpy_numba_acc.machine.device_figures import device_figures
    from armpy_numba_acc.machine.processors.features import Processor

    figures = device_figures(Processor("linux", "x86_64", frozenset(features)))
    known = capabilities_from(figures)
    types = [code for code in OperandCode if code is not OperandCode.MODEL]
    assert [code for code in types if known.lookup(code) == UNKNOWN] == []
    for pair in (known.relaxed_tensor, known.relaxed_scalar, known.if_performance):
        assert 0 < pair.exec_time < 1.5


def test_a_look_up_goes_by_the_type_of_operand() -> None:
    figures = capabilities_of(FIGURES)
    assert figures.lookup(OperandCode.TENSOR_FLOAT32) == PerformanceFigures(0.5, 0.25)
    assert figures.lookup(OperandCode.TENSOR_QUANT8_SYMM) == PerformanceFigures(2, 3)
    assert figures.lookup(OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL) == PerformanceFigures(2, 3)
    assert figures.lookup(OperandCode.INT32) == PerformanceFigures(4, 5)
    assert figures.lookup("com.acme.math.QUANT64") == PerformanceFigures(6, 7)


def test_what_is_not_known_is_the_largest_float() -> None:
    figures = capabilities_of(FIGURES)
    for operand_type in (OperandCode.FLOAT32, OperandCode.TENSOR_INT32, OperandCode.MODEL, "a.B"):
        assert figures.lookup(operand_type) == UNKNOWN
    assert figures.while_performance == UNKNOWN


def test_relaxed_and_control_flow_have_figures_of_their_own() -> None:
    figures = capabilities_of(FIGURES)
    assert figures.relaxed_tensor == PerformanceFigures(0.125, 0.125)
    assert figures.relaxed_scalar == UNKNOWN
    assert figures.if_performance == PerformanceFigures(8, 9)


def test_without_relaxed_figures_the_exact_ones_stand() -> None:
    exact = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})
    figures = capabilities_of(exact)
    assert figures.relaxed_tensor == PerformanceFigures(0.5, 0.25)
