"""Figures that the backend states of processors that were not measured."""

from __future__ import annotations

import pytest
from armpy_numba_acc import NumbaBackend
from armpy_numba_acc.machine.device_figures import device_figures
from armpy_numba_acc.machine.processors.features import Processor

from armpy.compiler.devices import FigureSource, device_facts
from armpy.plugins import BackendProxy
from armpy.types import DataType


def processor(*features: str) -> Processor:
    return Processor("linux", "x86_64", frozenset(features))


def test_figures_go_by_the_instructions() -> None:
    avx2, vnni = device_figures(processor("avx2")), device_figures(processor("avx2", "avx512vnni"))
    assert avx2 is not None
    assert vnni is not None
    assert avx2 != vnni
    assert all(figures.tensors[DataType.FLOAT32].exec_time < 1 for figures in (avx2, vnni))


def test_processors_without_measurements_have_no_figures() -> None:
    assert device_figures(processor("sse4.2")) is None
    assert device_figures(Processor("linux", "aarch64", frozenset({"dotprod"}))) is None


def test_the_facts_of_the_backend_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armpy_numba_acc.backend.this_processor", lambda: processor("avx2"))
    facts = device_facts(BackendProxy(NumbaBackend()))
    assert facts.figures == device_figures(processor("avx2"))
    assert facts.figures_source is FigureSource.TYPICAL
