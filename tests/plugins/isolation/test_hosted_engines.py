"""Engines in processes of their own are asked about connected layers at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from armpy import CompilationCaching, IsolationLimits, Runtime, RuntimeOptions
from armpy.compiler import OptimizerOptions
from armpy.execution import NetworkProperties
from armpy.model import Model
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.models.networks import doublings, floats, placement_of

ENGINE = """
    import time

    import numpy as np
    from armpy.backend import IEngineBackend, IEngineProgram, IEnginePrograms
    from armpy.errors import UnimplementedError

    class Program(IEngineProgram):
        model = b""

        def __init__(self, count):
            self.count = count

        def execute(self, inputs, outputs):
            np.multiply(inputs[0], 2**self.count, out=outputs[0])

    class Programs(IEnginePrograms):
        def describe(self, options):
            return {}

        def compile(self, model, about):
            if HANGS:
                time.sleep(60)
            with open(LOG, "a") as file:
                file.write(f"{len(model)} ")
            return Program(len(model))

    class Backend(IEngineBackend):
        def get_id(self):
            return "Engine"

        def get_api_version(self):
            return "2.8"

        def get_devices(self):
            return (DeviceInfo(device_type=DeviceType.CPU_COMPILED),)

        def get_engine(self):
            return Programs()

        def convert(self, view):
            if any(layer.operation.name != "ElementwiseBinary" for layer in view.layers):
                raise UnimplementedError("this is not an addition")
            with open(CONVERTED, "a") as file:
                file.write(f"{len(view.layers)} ")
            return bytes(len(view.layers))
"""


def options_of(
    folder: Path, device_type: str = "CPU_COMPILED", *, hangs: bool = False
) -> RuntimeOptions:
    """Options that find the engine, which notes the layers that it compiles and converts."""
    files = f"LOG, CONVERTED = {str(folder / 'log')!r}, {str(folder / 'converted')!r}\n"
    constants = f"{files}HANGS = {hangs}\n"
    extra = constants + dedent(ENGINE).replace("CPU_COMPILED", device_type)
    write_module(folder / "modules", "Test_Engine_backend", module_source("Engine", extra=extra))
    return RuntimeOptions(
        backends=["Engine", "CpuRef"],
        dynamic_backends_path=folder / "modules",
        isolation={"Engine": "process"},
        isolation_limits=IsolationLimits(
            keep_spare=False, writable_paths=(folder,), questions_timeout_s=1.5 if hangs else 300
        ),
    )


@pytest.mark.parametrize(
    ("refused", "timeout_s", "compiled", "converted", "factor"),
    [
        (None, None, "8", "8", 256),
        # As in this process; the parts around the refused layer are prepared one by one.
        (3, None, "4 3", "1 4 3", 128),
        (None, 60, "1 8", "1 8", 256),
    ],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_an_isolated_engine_converts_and_compiles_connected_layers_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: int | None,
    timeout_s: float | None,
    compiled: str,
    converted: str,
    factor: int,
    *,
    keeps: bool,
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    optimizer = OptimizerOptions(preparation_timeout_s=timeout_s)
    options = replace(options_of(tmp_path), caching=CompilationCaching(enabled=keeps))
    with Runtime(options) as runtime:
        properties = NetworkProperties(optimizer=optimizer)
        model = Model(doublings(8, refused), runtime, properties=properties)
        np.testing.assert_array_equal(model(floats(1, 2)), [factor, 2 * factor])
        assert placement_of(model).layers_by_backend["Engine"] == 8 - (refused is not None)
    assert (tmp_path / "log").read_text().strip() == compiled
    assert (tmp_path / "converted").read_text().strip() == converted


def test_an_engine_that_hangs_is_waited_for_with_one_limit_for_all_layers(tmp_path: Path) -> None:
    options = options_of(tmp_path, hangs=True)
    with Runtime(options) as runtime:
        placement = placement_of(Model(doublings(8), runtime))
        # The network is asked about for half of the time, then the first layer for the rest.
        assert runtime.isolation["Engine"].num_failures == 2
    assert placement.layers_by_backend == {"CpuRef": 8}
    first, *others = (refusal.text for refusal in placement.refusals)
    assert "it gave no answer within 0." in first
    assert set(others) == {"its process did not answer for 1.5 s"}
