"""Capabilities of devices, by NNAPI's types of operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import DeviceFigures, DeviceInfo, PerformanceFigures
from armpy.execution import RuntimeOptions
from armpy.types import DataType, DeviceType
from armpy_nnapi import DeviceManager, OperandCode
from armpy_nnapi.capabilities import capabilities_from
from armpy_testing.backends.fake_backends import FakeBackend, registry_of

UNKNOWN = PerformanceFigures(*[float(np.finfo(np.float32).max)] * 2)
FIGURES = DeviceFigures(
    {DataType.FLOAT32: PerformanceFigures(0.5, 0.25), DataType.QSYMM_S8: PerformanceFigures(2, 3)},
    {DataType.SIGNED32: PerformanceFigures(4, 5)},
    {"com.acme.math.QUANT64": PerformanceFigures(6, 7)},
    relaxed_tensor=PerformanceFigures(0.125, 0.125),
    if_=PerformanceFigures(8, 9),
)


class Npu(FakeBackend):
    """Declares the figures that a test sets."""

    figures: DeviceFigures | None = FIGURES

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR, figures=self.figures),)


@pytest.fixture
def npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npu:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    return Npu("Npu")


@pytest.fixture
def manager(npu: Npu) -> Iterator[DeviceManager]:
    registry = registry_of(npu, ReferenceBackend())
    with DeviceManager(RuntimeOptions(registry=registry)) as manager:
        yield manager


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


def test_a_look_up_goes_by_the_type_of_operand(manager: DeviceManager) -> None:
    figures = manager.get_device_of_backend("Npu").capabilities
    assert figures.lookup(OperandCode.TENSOR_FLOAT32) == PerformanceFigures(0.5, 0.25)
    assert figures.lookup(OperandCode.TENSOR_QUANT8_SYMM) == PerformanceFigures(2, 3)
    assert figures.lookup(OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL) == PerformanceFigures(2, 3)
    assert figures.lookup(OperandCode.INT32) == PerformanceFigures(4, 5)
    assert figures.lookup("com.acme.math.QUANT64") == PerformanceFigures(6, 7)


def test_what_is_not_known_is_the_largest_float(manager: DeviceManager) -> None:
    figures = manager.get_device_of_backend("Npu").capabilities
    for operand_type in (OperandCode.FLOAT32, OperandCode.TENSOR_INT32, OperandCode.MODEL, "a.B"):
        assert figures.lookup(operand_type) == UNKNOWN
    assert figures.while_performance == UNKNOWN


def test_relaxed_and_control_flow_have_figures_of_their_own(manager: DeviceManager) -> None:
    figures = manager.get_device_of_backend("Npu").capabilities
    assert figures.relaxed_tensor == PerformanceFigures(0.125, 0.125)
    assert figures.relaxed_scalar == UNKNOWN
    assert figures.if_performance == PerformanceFigures(8, 9)


def test_without_relaxed_figures_the_exact_ones_stand(manager: DeviceManager, npu: Npu) -> None:
    npu.figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})
    figures = manager.get_device_of_backend("Npu").capabilities
    assert figures.relaxed_tensor == PerformanceFigures(0.5, 0.25)
