"""What is dropped without being closed leaves nothing behind."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import armpy
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy.plugins import BackendRegistry, PluginOptions
from tests.support.dynamic_modules import private_modules, write_module
from tests.support.networks import chain, floats

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
X = floats(-1, 2, 3, 4)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a backend, which every registry looks into."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "modules"
    write_module(folder, "Arm_TestDynamic_backend")
    folder.chmod(0o755)
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", str(folder))
    return folder


def num_descriptors() -> int:
    """Files that this process has open; 0 where that cannot be told."""
    path = Path("/proc/self/fd")
    return len(os.listdir(path)) if path.exists() else 0


def use_runtime() -> object:
    runtime = Runtime(RuntimeOptions(backends=["TestDynamic", "CpuRef"], profiling=True))
    Model(chain(), runtime)(X)
    return runtime._registry.get("TestDynamic")


def use_native_code() -> object:
    runtime = Runtime(RuntimeOptions(backends=["NumbaAcc", "TestDynamic", "CpuRef"], num_threads=2))
    Model(chain(), runtime)(X)
    return runtime


def load_file() -> object:
    return armpy.load(DIGITS, backends=["TestDynamic"])


def ask_devices() -> object:
    nnapi = pytest.importorskip("armpy_nnapi", reason="armpy-nnapi is not installed")
    manager = nnapi.DeviceManager(RuntimeOptions())
    assert "TestDynamic" in [device.backend_id for device in manager.devices]
    return manager


def fail_to_make() -> object:
    options = {"TestDynamic": {"unknown": 1}}
    with pytest.raises(InvalidArgumentError, match="no option 'unknown'") as caught:
        Runtime(RuntimeOptions(backends=["TestDynamic"], backend_options=options))
    return caught.value


def num_threads() -> int:
    """Threads that run, without those of the process for deadlines and idle memory, which end."""
    of_the_process = ("armpy-deadlines", "armpy-idling")
    return sum(thread.name not in of_the_process for thread in threading.enumerate())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "count"),
    [
        (use_runtime, 100),
        (use_native_code, 30),
        (load_file, 20),
        (ask_devices, 20),
        (fail_to_make, 20),
    ],
)
def test_what_is_dropped_leaves_nothing(
    directory: Path, use: Callable[[], object], count: int
) -> None:
    use()  # what is made once for the process
    gc.collect()
    assert not private_modules()
    threads, descriptors = num_threads(), num_descriptors()
    left = [weakref.ref(use()) for _ in range(count)]
    gc.collect()
    assert not private_modules()
    assert not [one for one in left if one() is not None]
    assert num_threads() <= threads
    assert num_descriptors() <= descriptors


def test_a_runtime_goes_with_its_last_model_without_the_collector(directory: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        model = armpy.load(DIGITS, backends=["TestDynamic"])
        assert private_modules()
        del model
        assert not private_modules()
    finally:
        gc.enable()


def test_a_model_keeps_its_runtime_s_modules(directory: Path) -> None:
    model = Model(chain(), Runtime(RuntimeOptions(backends=["TestDynamic"])))
    gc.collect()
    assert private_modules()
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"TestDynamic": 3}
    model(X)


def test_a_registry_that_is_dropped_forgets_what_it_imported(directory: Path) -> None:
    registry = BackendRegistry.discover(PluginOptions())
    backend = registry.get("TestDynamic")
    assert private_modules()
    del registry
    assert not private_modules()
    assert backend.get_id() == "TestDynamic"  # it goes on working
    with pytest.raises(BackendUnavailableError, match="no backend 'Nobody'"):
        BackendRegistry.discover(PluginOptions()).get("Nobody")
    gc.collect()
    assert not private_modules()
