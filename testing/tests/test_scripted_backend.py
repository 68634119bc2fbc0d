"""The scripted backend computes right, follows its script, and records its calls."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from armpy.backend import (
    DeviceFigures,
    DeviceInfo,
    PerformanceFigures,
    PreparationRequest,
    ProgramFit,
    ReasonCode,
    Support,
)
from armpy.errors import ArmpyError, BackendError
from armpy.graph import SubgraphView
from armpy.ops import Activation
from armpy.types import DataType, DeviceType
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import (
    Script,
    ScriptedBackend,
    answers,
    declaration,
    in_order,
    log_of,
    raises,
    right,
    sleeps,
    waits,
    write_scripted,
    wrong_results,
    wrong_shapes,
)
from armpy_testing.models.networks import chain, diamond, floats

X = floats(-1, 0, 1, 2)
DIAMOND_OF_X = floats(1, 1, 5, 9)  # relu(x) + 1 + 3 relu(x) by hand: 1 + 4 max(x, 0)


def run(backend: ScriptedBackend) -> np.ndarray:
    """The diamond's output, with CpuRef for layers that the backend does not take."""
    with runtime_of(backend) as runtime:
        return runtime.enqueue_workload(runtime.load_network(diamond()), {"x": X})["y"]


@pytest.mark.parametrize("compiles", [False, True])
def test_without_a_script_it_computes_right(compiles: bool) -> None:
    backend = ScriptedBackend("Npu", compiles=compiles)
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    names = [call.arguments["name"] for call in backend.calls_of("execute")]
    assert len(names) == (1 if compiles else 4)


def test_it_supports_the_listed_operations() -> None:
    backend = ScriptedBackend("Npu", operations=[Activation])
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    assert [call.arguments["name"] for call in backend.calls_of("execute")] == ["top"]


def test_every_call_is_written_down_in_order_with_its_arguments() -> None:
    backend = ScriptedBackend("Npu", operations=[Activation])
    run(backend)
    firsts = sorted(set(backend.methods), key=backend.methods.index)
    assert firsts == ["open", "support", "optimize", "create_factory", "create_workload", "execute"]
    (optimized,) = backend.calls_of("optimize")
    assert isinstance(optimized.arguments["view"], SubgraphView)
    assert isinstance(optimized.arguments["request"], PreparationRequest)
    assert isinstance(backend.calls_of("create_workload")[0].arguments["operation"], Activation)
    starts = [call.started_s for call in backend.calls]
    assert starts == sorted(starts)
    backend.forget()
    assert backend.methods == []


@pytest.mark.parametrize("method", ["support", "optimize", "create_workload"])
def test_what_fails_in_preparation_runs_elsewhere(method: str) -> None:
    backend = ScriptedBackend("Npu", {method: raises(BackendError("out of units"))})
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    assert backend.calls_of(method)
    assert not backend.calls_of("execute")


def test_an_execution_fails_with_the_error_of_the_script() -> None:
    backend = ScriptedBackend("Npu", {"execute": raises(BackendError("out of units"))})
    with pytest.raises(ArmpyError, match="out of units"):
        run(backend)


def test_steps_are_taken_one_by_one_and_the_last_goes_on() -> None:
    backend = ScriptedBackend("Npu", {"execute": [right(), raises(BackendError("x")), right()]})
    with runtime_of(backend) as runtime:
        network = runtime.load_network(chain(1))
        outcomes: list[float | None] = []
        for _ in range(4):
            try:
                outcomes.append(float(runtime.enqueue_workload(network, {"x": X})["y"][0]))
            except ArmpyError:
                outcomes.append(None)
    assert outcomes == [0.0, None, 0.0, 0.0]


def test_an_answer_takes_the_place_of_the_right_one() -> None:
    backend = ScriptedBackend(
        "Npu", {"support": answers(Support.no(ReasonCode.DEVICE, "it is busy"))}
    )
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    assert not backend.calls_of("optimize")


def test_wrong_results_and_wrong_shapes_are_wrong() -> None:
    liar = ScriptedBackend("Npu", {"execute": wrong_results()}, compiles=True)
    np.testing.assert_array_equal(run(liar), DIAMOND_OF_X + 1)
    with runtime_of(ScriptedBackend("Npu", {"optimize": wrong_shapes()})) as runtime:
        network = runtime.load_network(diamond())
        np.testing.assert_array_equal(
            runtime.enqueue_workload(network, {"x": X})["y"], [1, 1, 5, 9]
        )
        assert "shape" in str(runtime.get_network(network).placement)


def test_it_sleeps_before_it_does_the_right_thing() -> None:
    backend = ScriptedBackend("Npu", {"execute": sleeps(0.05)}, compiles=True)
    started = time.perf_counter()
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    assert time.perf_counter() - started >= 0.05


def test_it_waits_for_an_event_and_gives_up_if_it_is_not_set() -> None:
    event = threading.Event()
    threading.Timer(0.02, event.set).start()
    backend = ScriptedBackend("Npu", {"execute": waits(event)}, compiles=True)
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    assert event.is_set()
    never = ScriptedBackend("Npu", {"execute": waits(threading.Event(), 0.01)})
    with pytest.raises(ArmpyError, match="the event was not set"):
        run(never)


def test_several_steps_make_one_call() -> None:
    late = in_order(sleeps(0.03), raises(BackendError("too late")))
    backend = ScriptedBackend("Npu", {"execute": late})
    started = time.perf_counter()
    with pytest.raises(ArmpyError, match="too late"):
        run(backend)
    assert time.perf_counter() - started >= 0.03


def test_it_declares_its_arguments() -> None:
    figures = DeviceFigures(tensors={DataType.FLOAT32: PerformanceFigures(0.2, 0.5)})
    backend = ScriptedBackend(
        "Npu",
        declared=declaration(
            device_type=DeviceType.GPU,
            version="1.4",
            feature_level=28,
            keeps_programs=True,
            figures=figures,
        ),
    )
    assert backend.get_devices() == (DeviceInfo("", DeviceType.GPU, 28, figures),)
    assert backend.version == "1.4"
    assert backend.get_programs() is not None
    assert ScriptedBackend("Npu").get_programs() is None


def test_what_it_saves_it_loads_and_nothing_else() -> None:
    backend = ScriptedBackend("Npu", declared=declaration(keeps_programs=True))
    programs = backend.get_programs()
    assert programs is not None
    net = diamond()
    saved = programs.save(SubgraphView.of(net, net.layers), {})
    assert saved is not None
    assert programs.check(saved.about, {}).fit is ProgramFit.ACCEPTED
    loaded = programs.load(saved)
    assert isinstance(loaded, SubgraphView)
    assert [layer.name for layer in loaded.layers] == [layer.name for layer in net.layers]
    assert backend.methods == ["save", "check", "load"]
    for odd in ({}, {**saved.about, "version": "0.9"}, {**saved.about, "maker": "Gpu"}):
        assert programs.check(odd, {}).fit is ProgramFit.REBUILD
    refusing = ScriptedBackend(
        "Npu", {"load": raises(BackendError("x"))}, declared=declaration(keeps_programs=True)
    ).get_programs()
    assert refusing is not None
    with pytest.raises(BackendError, match="x"):
        refusing.load(saved)


def test_a_method_that_cannot_be_scripted_is_refused() -> None:
    script: Script = {"exceute": right()}
    with pytest.raises(ValueError, match="exceute"):
        ScriptedBackend("Npu", script)


@pytest.mark.slow
def test_another_process_finds_it_and_appends_what_it_asks(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    how = f"ScriptedBackend('Npu', {{'execute': wrong_results()}}, compiles=True, log={str(log)!r})"
    options = write_scripted(tmp_path / "drivers", how)
    assert options.dynamic_backends_path == tmp_path / "drivers"
    folder = str(tmp_path / "drivers")
    program = f"""
import numpy as np
from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.models.networks import chain
options = RuntimeOptions(backends=["Npu", "CpuRef"], dynamic_backends_path={folder!r})
with Runtime(options) as runtime:
    network = runtime.load_network(chain(1))
    print(runtime.enqueue_workload(network, {{"x": np.zeros(4, np.float32)}})["y"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[2. 2. 2. 2.]"
    assert log_of(log).count("execute") == 1
    assert log_of(tmp_path / "nothing") == []
