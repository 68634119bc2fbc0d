"""What is known of the device of a backend in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy import Runtime, RuntimeOptions
from armpy.backend import PerformanceFigures
from armpy.compiler.devices import FigureSource
from armpy.types import DataType
from tests.support.dynamic_modules import module_source, write_module

DECLARING = """
    from armpy.backend import DeviceFigures, PerformanceFigures
    from armpy.types import DataType


    def devices(self):
        figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(FIGURE, 0.5)})
        return [DeviceInfo(feature_level=28, figures=figures)]


    Backend.get_devices = devices
"""


def runtime_with(folder: Path, figure: str) -> Runtime:
    source = module_source("Declarer", extra=f"    FIGURE = {figure}\n{DECLARING}")
    write_module(folder, "acme_declarer_backend", source)
    options = RuntimeOptions(
        ["Declarer", "CpuRef"],
        dynamic_backends_path=folder,
        isolation={"Declarer": "process"},
    )
    return Runtime(options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


def test_declared_facts_come_across_the_processes(tmp_path: Path) -> None:
    with runtime_with(tmp_path, "0.25") as runtime:
        declarer, reference = runtime.devices
    assert (declarer.is_isolated, reference.is_isolated) == (True, False)
    assert declarer.feature_level == 28
    assert declarer.figures is not None
    assert declarer.figures_source is FigureSource.DECLARED
    assert declarer.figures.tensors == {DataType.FLOAT32: PerformanceFigures(0.25, 0.5)}


def test_figures_of_a_lying_backend_stay_on_its_side(tmp_path: Path) -> None:
    with runtime_with(tmp_path, "float('nan')") as runtime:
        declarer, _ = runtime.devices
    assert declarer.figures is None
