"""``armpy calibrate`` and ``armpy devices``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.cli.commands.devices import figure_rows
from armpy.core.machine import machine_identity
from armpy.execution import Runtime, RuntimeOptions
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    write_module,
)
from armpy_testing.command_line import armpy_command

pytest.importorskip("click")

DECLARING = """
    from armpy.backend import DeviceFigures, DeviceInfo, PerformanceFigures
    from armpy.types import DataType, DeviceType


    def devices(self):
        figures = DeviceFigures(
            {DataType.FLOAT32: PerformanceFigures(FIGURE, 0.125)},
            extensions={"com.acme.math.QUANT64": PerformanceFigures(3.5, 4.5)},
        )
        return [DeviceInfo("npu0", DeviceType.ACCELERATOR, 29, figures), DeviceInfo("npu1")]


    Backend.get_devices = devices
    Backend.get_free_memory = lambda self, device: 3 << 20
    Backend.for_runtime = lambda self, options: self
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    yield
    forget_private_modules()


def declaring(folder: Path, figure: str = "0.0625") -> list[str]:
    """The options with which there is a backend that declares figures."""
    source = module_source("Declarer", extra=f"    FIGURE = {figure}\n{DECLARING}")
    write_module(folder, "acme_declarer_backend", source)
    return ["--dynamic-backends-path", str(folder)]


@pytest.mark.slow
def test_a_calibration_as_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert armpy_command(["calibrate", "--backend", "CpuRef", "--seconds", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machine"] == machine_identity()
    (backend,) = document["backends"]
    assert backend["backend"] == "CpuRef"
    assert backend["problem"] == ""
    assert backend["kept"] is True
    assert backend["figures"]["tensors"]["FLOAT32"] == {"exec_time": 1.0, "power_usage": 1.0}
    assert backend["costs"]["rates"]
    assert "no time was left" in backend["left_out"].values()


def test_declared_facts_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = declaring(tmp_path)
    assert armpy_command(["devices", *options, "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    (facts,) = [device for device in devices if device["backend"] == "Declarer"]
    assert facts["feature_level"] == 29
    assert (facts["num_cache_files"], facts["num_data_cache_files"]) == (0, 0)
    assert (facts["device"], [*facts["other_devices"]]) == ("npu0", ["npu1"])
    assert facts["free_bytes"] == 3 << 20
    assert facts["numerics"]["keeps_nan"] is True
    assert facts["figures_source"] == "declared"
    assert facts["figures"]["tensors"]["FLOAT32"]["exec_time"] == 0.0625
    assert facts["figures"]["extensions"]["com.acme.math.QUANT64"]["power_usage"] == 4.5
    assert armpy_command(["devices", *options]) == 0
    shown = capsys.readouterr().out
    assert "cache files: 0, of data: 0" in shown
    assert "device npu0; others: npu1 (" in shown
    assert "free memory: 3 MiB" in shown
    assert "com.acme.math.QUANT64" in shown
    assert re.search(r"^float32 +0\.0625 ", shown, re.MULTILINE)


def test_a_figure_of_one_type_is_not_said_to_be_of_all() -> None:
    figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})
    assert figure_rows(figures) == [("float32", "0.5", "0.25")]


@pytest.mark.slow
def test_a_runtime_has_the_same_devices(tmp_path: Path) -> None:
    options = declaring(tmp_path)
    with Runtime(RuntimeOptions(["Declarer", "CpuRef"], dynamic_backends_path=tmp_path)) as runtime:
        declarer, reference = runtime.devices
        assert (reference.backend, reference.type.name) == ("CpuRef", "CPU_REFERENCE")
        assert declarer.figures is not None
        assert declarer.figures.tensors[DataType.FLOAT32].exec_time == 0.0625
        assert (
            armpy_command(["calibrate", "--backend", "Declarer", "--seconds", "1", *options]) == 0
        )
        assert runtime.devices == (declarer, reference)
