"""Facts of the device of a backend in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy import NetworkProperties, Runtime, RuntimeOptions
from armpy.backend import PerformanceFigures
from armpy.compiler import OptimizerOptions
from armpy.compiler.devices import FigureSource
from armpy.model import Model
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.models.networks import chain

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


@pytest.mark.slow
def test_declared_facts_come_across_the_processes(tmp_path: Path) -> None:
    with runtime_with(tmp_path, "0.25") as runtime:
        declarer, reference = runtime.devices
    assert (declarer.is_isolated, reference.is_isolated) == (True, False)
    assert declarer.feature_level == 28
    assert declarer.figures is not None
    assert declarer.figures_source is FigureSource.DECLARED
    assert declarer.figures.tensors == {DataType.FLOAT32: PerformanceFigures(0.25, 0.5)}


@pytest.mark.slow
def test_figures_of_a_lying_backend_stay_on_its_side(tmp_path: Path) -> None:
    with runtime_with(tmp_path, "float('nan')") as runtime:
        declarer, _ = runtime.devices
    assert declarer.figures is None


CAREFUL = """
    from armpy.backend import ILayerSupport, ReasonCode, Support


    class Careful(ILayerSupport):
        def __init__(self, right, relaxed):
            self._right, self._relaxed = right, relaxed

        def is_layer_supported(self, operation, inputs, outputs):
            if not self._relaxed:
                return Support.no(ReasonCode.DATA_TYPE, "it has float16 only")
            return self._right.is_layer_supported(operation, inputs, outputs)


    def careful(self, request):
        return Careful(ReferenceBackend.get_layer_support(self, request), request.relaxed)


    Backend.get_layer_support = careful
"""


@pytest.mark.slow
@pytest.mark.parametrize("relaxed", [False, True])
def test_the_relaxed_flag_of_a_network_crosses_the_processes(relaxed: bool, tmp_path: Path) -> None:
    write_module(tmp_path, "acme_careful_backend", module_source("Careful", extra=CAREFUL))
    options = RuntimeOptions(
        ["Careful", "CpuRef"],
        dynamic_backends_path=tmp_path,
        isolation={"Careful": "process"},
    )
    properties = NetworkProperties(optimizer=OptimizerOptions(relaxed=relaxed))
    with Runtime(options) as runtime:
        placement = Model(chain(1), runtime, properties=properties).placement
    assert placement is not None
    assert placement.layers_by_backend == {("Careful" if relaxed else "CpuRef"): 1}
