"""Compilation in the background: what answers until all is compiled, and what does then."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import IsolationLimits
from armpy.backend.preparation import are_compilations_postponed, postponed_compilation
from armpy.errors import (
    BackendError,
    PreparationTimeoutError,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.background import compile_process, tiers
from armpy_testing.descendants import await_end, is_running
from armpy_testing.models.networks import floats, placement_of
from armpy_testing.models.tflite_control_flow import variable_model
from armpy_testing.models.tflite_writer import TfliteModel
from tests.support.gated_compiler import ADDED, GatedCompiler

BACKENDS = ["Gated", "CpuRef"]
X = floats(1, 2)
SLOW, FAST = [2.0, 4.0], [1 + ADDED, 2 + ADDED]


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GatedCompiler:
    """A compiler that waits at a closed gate, with a cache of its own."""
    return GatedCompiler.install(tmp_path, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model that doubles its input, by an addition."""
    file = tmp_path / "double.tflite"
    file.write_bytes(doubled((2,)))
    return file


def doubled(shape: tuple[int, ...], signature: tuple[int, ...] | None = None) -> bytes:
    """A model that adds its input to itself, and names a value in between."""
    model = TfliteModel()
    main = model.subgraph()
    x = main.tensor("x", shape, shape_signature=signature)
    middle = main.tensor("middle", shape, shape_signature=signature)
    y = main.tensor("y", shape, shape_signature=signature)
    main.operator("ADD", [x, x], [middle], {})
    main.operator("ABS", [middle], [y], {})
    main.inputs(x)
    main.outputs(y)
    return model.to_bytes()


def load(source: Any, **options: Any) -> armpy.Model:
    """A model whose kernels are compiled in the background."""
    return armpy.load(source, **{"backends": BACKENDS, "compile": "background", **options})


def answer(model: Callable[..., Any], given: Any) -> Any:
    """What a model makes of an input."""
    return model(given).tolist()


def wait_for(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_calls_are_answered_before_and_after_the_exchange(
    compiler: GatedCompiler, path: Path
) -> None:
    with load(path) as model:
        assert answer(model, X) == SLOW
        assert model.run({"x": X})["y"].tolist() == SLOW
        assert model.start({"x": X}).result()["y"].tolist() == SLOW
        assert asyncio.run(model.run_async({"x": X}))["y"].tolist() == SLOW
        compiler.open_gate()
        model.warm_up()
        assert answer(model, X) == FAST
        assert model.run({"x": X}, {"y": np.zeros(2, np.float32)})["y"].tolist() == FAST
        assert model.start({"x": X}).result()["y"].tolist() == FAST
        assert asyncio.run(model.run_async({"x": X}))["y"].tolist() == FAST
    assert len(compiler.compiled) == 1
    assert os.getpid() not in compiler.compiled


@pytest.mark.slow
def test_calls_are_answered_while_a_backend_in_its_own_process_compiles(
    compiler: GatedCompiler, path: Path
) -> None:
    options = RuntimeOptions(
        BACKENDS,
        isolation={"Gated": "process"},
        isolation_limits=IsolationLimits(writable_paths=(compiler.folder,)),
    )
    with Runtime(options) as runtime:
        model = armpy.load(path, runtime=runtime, compile="background")
        assert answer(model, X) == SLOW
        compiler.open_gate()
        model.warm_up()
        assert answer(model, X) == FAST
        assert placement_of(model).layers_by_backend == {"Gated": 2}
    assert len(compiler.compiled) == 1


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [True, False])
def test_calls_go_over_to_several_backends_that_compile(
    compiler: GatedCompiler, path: Path, keeps: bool
) -> None:
    compiler.add("Other")
    if not keeps:
        compiler.keep_nothing()
    with load(path, backends=["Gated", "Other", "CpuRef"], spread="calls") as model:
        assert answer(model, X) == SLOW
        assert model.placement is not None
        assert model.placement.layers_by_backend == {"CpuRef": 2}
        execution = model.bind({"x": X})
        compiler.open_gate()
        model.warm_up()
        spread = model.handle.loaded.spread
        assert spread is not None
        for backend in spread.backends[:2]:
            for other in spread.backends:
                other.seconds[X.shape,] = 1.0
            backend.seconds.clear()  # it is asked next
            assert answer(model, X) == FAST
        assert all(backend.executions for backend in spread.backends[:2])
        assert execution()["y"].tolist() == SLOW
        done = model.placement
        assert done.layers_by_backend == {"Gated": 2, "Other": 2, "CpuRef": 2}
        assert done.compilation is not None
        assert done.compilation.backends == ("Gated", "Other")
        networks = spread.networks
    assert all(network.is_closed for network in networks)
    here = compiler.compiled.count(os.getpid())
    assert (len(compiler.compiled), here) == ((2, 0) if keeps else (4, 2))


@pytest.mark.slow
def test_the_placement_says_what_runs_and_what_is_to_come(
    compiler: GatedCompiler, path: Path
) -> None:
    with load(path) as model:
        for _ in range(3):
            model(X)
        pending = model.placement
        assert pending is not None
        assert pending.layers_by_backend == {"CpuRef": 2}
        assert pending.compilation is not None
        assert pending.compilation.state == "pending"
        assert pending.compilation.calls == 3
        assert "Gated is compiling in another process" in str(pending)
        compiler.open_gate()
        model.warm_up()
        done = model.placement
        assert done is not None
        assert done.layers_by_backend == {"Gated": 2}
        assert done.compilation is not None
        assert (done.compilation.state, done.compilation.calls) == ("done", 3)
        assert done.compilation.backends == ("Gated",)
        assert "Gated took over after 3 calls and " in str(done)
        assert '"state": "done"' in done.to_json()


def test_what_is_compiled_already_has_no_second_tier(compiler: GatedCompiler, path: Path) -> None:
    compiler.open_gate()
    armpy.load(path, backends=BACKENDS).close()
    with load(path) as model:
        assert answer(model, X) == FAST
        assert model.placement is not None
        assert model.placement.compilation is None
    assert len(compiler.begun) == 1


def test_a_network_without_another_backend_waits(compiler: GatedCompiler, path: Path) -> None:
    compiler.open_gate()
    with load(path, backends=["Gated"]) as model:
        assert answer(model, X) == FAST
    with load(path, on_fallback="error") as model:
        assert answer(model, X) == FAST


@pytest.mark.slow
def test_waiting_ends_in_time(compiler: GatedCompiler, path: Path) -> None:
    with load(path) as model:
        with pytest.raises(PreparationTimeoutError, match=r"still being compiled.*within 0\.05 s"):
            model.warm_up(timeout_s=0.05)
        assert answer(model, X) == SLOW
        compiler.open_gate()
        model.warm_up(timeout_s=60)
        assert answer(model, X) == FAST


@pytest.mark.slow
def test_every_call_of_many_threads_is_of_one_tier(compiler: GatedCompiler, path: Path) -> None:
    seen: list[list[Any]] = [[] for _ in range(4)]
    with load(path) as model:

        def call(answers: list[Any]) -> None:
            while not answers or answers[-1] != FAST:
                answers.append(answer(model, X))

        threads = [threading.Thread(target=call, args=(answers,)) for answers in seen]
        for thread in threads:
            thread.start()
        wait_for(lambda: all(seen))
        compiler.open_gate()
        for thread in threads:
            thread.join(60)
    for answers in seen:
        # First the one, then the other, and nothing in between.
        assert answers == [SLOW] * (len(answers) - 1) + [FAST]
        assert len(answers) > 1


@pytest.mark.slow
def test_variables_go_on_where_they_were(compiler: GatedCompiler) -> None:
    with load(variable_model().to_bytes()) as model:
        for _ in range(3):
            total = model.run({"x": floats(1, 1)})
        assert [4, 5] in [array.tolist() for array in total.values()]
        compiler.open_gate()
        model.warm_up()
        total = model.run({"x": floats(1, 1)})
        # The program adds 1000 to what the variable held, 4 and 5, and the input.
        assert [4 + 1 + ADDED, 5 + 1 + ADDED] in [array.tolist() for array in total.values()]
        model.reset_state()
        total = model.run({"x": floats(1, 1)})
        assert [1 + 1 + ADDED, 2 + 1 + ADDED] in [array.tolist() for array in total.values()]


@pytest.mark.slow
def test_shapes_that_come_later_are_compiled_in_the_background(
    compiler: GatedCompiler, tmp_path: Path
) -> None:
    path = tmp_path / "open.tflite"
    path.write_bytes(doubled((1,), (-1,)))
    with load(path) as model:
        assert answer(model, X) == SLOW
        assert answer(model, floats(1, 2, 3)) == [2, 4, 6]
        compiler.open_gate()
        model.warm_up([{"x": (2,)}, {"x": (3,)}])
        assert answer(model, X) == FAST
        assert answer(model, floats(1, 2, 3)) == [1 + ADDED, 2 + ADDED, 3 + ADDED]
    assert os.getpid() not in compiler.compiled


@pytest.mark.slow
def test_bound_executions_and_working_memory_stay_what_they_were_made_for(
    compiler: GatedCompiler, path: Path
) -> None:
    with load(path) as model:
        array = X.copy()
        execution, memory = model.bind({"x": array}), model.create_working_memory()
        assert execution()["y"].tolist() == SLOW
        compiler.open_gate()
        model.warm_up()
        array[:] = 3
        assert execution()["y"].tolist() == [6, 6]
        assert model.run({"x": X}, memory=memory)["y"].tolist() == SLOW
        assert model.bind({"x": X.copy()})()["y"].tolist() == FAST
        with model.create_working_memory() as newer:
            assert model.run({"x": X}, memory=newer)["y"].tolist() == FAST


@pytest.mark.slow
def test_what_fails_to_compile_stays_where_it_is_and_says_so(
    compiler: GatedCompiler, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiler.fail()
    with load(path) as model:
        assert answer(model, X) == SLOW
        compiler.open_gate()
        for _ in range(2):
            with pytest.raises(BackendError, match="the compiler has a mistake"):
                model.warm_up()
        assert answer(model, X) == SLOW
        placement = model.placement
        assert placement is not None
        assert placement.compilation is not None
        assert placement.compilation.state == "failed"
        assert "Gated failed to compile" in str(placement)
        assert "the compiler has a mistake" in str(placement)
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert any("Gated could not be compiled in the background" in r.message for r in warned)


def test_the_thread_that_compiles_has_not_the_caller_s_context(
    compiler: GatedCompiler, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Free-threaded Pythons let threads inherit it.
    work, postpones = tiers._work, []

    def noted(reference: Any) -> None:
        postpones.append(are_compilations_postponed())
        work(reference)

    monkeypatch.setattr(tiers, "_work", noted)
    compiler.open_gate()
    with postponed_compilation(), load(path) as model:
        model.warm_up()
    assert postpones == [False]


def test_where_no_interpreter_can_be_started_this_process_compiles(
    compiler: GatedCompiler, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with load(path) as model:
        assert answer(model, X) == SLOW
        compiler.open_gate()
        model.warm_up()
        assert answer(model, X) == FAST
        assert model.placement is not None
        assert model.placement.compilation is not None
        assert "can start no interpreter" in model.placement.compilation.where
    assert compiler.compiled == [os.getpid()]


def test_without_a_folder_to_write_to_this_process_compiles(
    compiler: GatedCompiler, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARMPY_CACHE_DIR", os.fspath(tmp_path / "file" / "cache"))
    with load(path) as model:
        assert answer(model, X) == SLOW
        compiler.open_gate()
        model.warm_up()
        assert answer(model, X) == FAST
    assert compiler.compiled == [os.getpid()]


def test_what_another_process_cannot_have_is_compiled_here(
    compiler: GatedCompiler, path: Path
) -> None:
    registry = armpy.backend_registry()
    registry.register("Mine", lambda: registry.get("CpuRef"))
    runtime = armpy.Runtime(armpy.RuntimeOptions(BACKENDS, registry=registry))
    with runtime, load(path, backends=None, runtime=runtime) as model:
        assert answer(model, X) == SLOW
        compiler.open_gate()
        model.warm_up()
        assert answer(model, X) == FAST
    assert compiler.compiled == [os.getpid()]


@pytest.mark.slow
def test_closing_ends_the_process_that_compiles(compiler: GatedCompiler, path: Path) -> None:
    model = load(path)
    wait_for(lambda: compiler.begun)
    model.close()
    await_end(compiler.begun[0])
    assert compiler.compiled == []


_APPLICATION = """\
import sys, armpy
model = armpy.load(sys.argv[1], backends=["Gated", "CpuRef"], compile="background")
print(model([1, 2]).tolist(), flush=True)
sys.stdin.read()
model.warm_up()
print(model([1, 2]).tolist(), flush=True)
"""


def application(path: Path) -> subprocess.Popen[str]:
    """A process that answers, and waits for what is compiled once its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _APPLICATION, os.fspath(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_killing_the_application_ends_the_process_that_compiles_and_the_next_one_goes_on(
    compiler: GatedCompiler, path: Path
) -> None:
    with application(path) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == f"{SLOW}\n"
        wait_for(lambda: compiler.begun)
        killed.send_signal(signal.SIGKILL)
    await_end(compiler.begun[0])
    assert compiler.compiled == []
    compiler.open_gate()
    with load(path) as model:
        model.warm_up()
        assert answer(model, X) == FAST
    assert len(compiler.compiled) == 1


_FORKING_APPLICATION = """\
import os, sys, time, armpy
model = armpy.load(sys.argv[1], backends=["Gated", "CpuRef"], compile="background")
sys.stdin.readline()
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_forked_child_of_the_application_does_not_keep_the_process_that_compiles(
    compiler: GatedCompiler, path: Path
) -> None:
    command = [sys.executable, "-c", _FORKING_APPLICATION, os.fspath(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as killed:
        assert killed.stdin is not None
        assert killed.stdout is not None
        wait_for(lambda: compiler.begun)
        killed.stdin.write("fork\n")
        killed.stdin.flush()
        child = int(killed.stdout.readline())
        try:
            killed.kill()
            await_end(compiler.begun[0])
            assert is_running(child)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing stops a process here")
def test_a_process_that_is_stopped_before_it_reads_its_request_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = compile_process.CompileRequest(partial(len, bytes(1 << 22)), None, ("Gated",))
    process = compile_process.CompileProcess(request)
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(compile_process, "_LONGEST_SILENCE_S", 0.1)
    assert "has not answered" in process.outcome().unfit
    await_end(process.pid)


@pytest.mark.slow
def test_models_that_wait_for_their_turn_have_no_process(
    compiler: GatedCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[int] = []
    most: list[int] = []

    class NotingProcess(compile_process.CompileProcess):
        def __init__(self, request: compile_process.CompileRequest) -> None:
            super().__init__(request)
            running[:] = [*filter(is_running, running), self.pid]
            most.append(len(running))

    monkeypatch.setattr(tiers, "CompileProcess", NotingProcess)
    models = []
    for count in (1, 2):
        path = tmp_path / f"{count}.tflite"
        path.write_bytes(doubled((count,)))
        models.append(load(path))
    wait_for(lambda: compiler.begun)
    assert most == [1]
    compiler.open_gate()
    for model in models:
        model.warm_up(timeout_s=120)
        model.close()
    assert most == [1, 1]


def test_the_outcome_of_a_process_that_dies_is_an_error() -> None:
    request = compile_process.CompileRequest(os.abort, None, ("Gated",))
    outcome = compile_process.CompileProcess(request).outcome()
    assert isinstance(outcome.error, BackendError)
    code = 3 if sys.platform == "win32" else -6
    assert f"exit code {code}" in str(outcome.error)


def test_only_so_many_shapes_are_compiled_in_the_background(
    compiler: GatedCompiler, tmp_path: Path
) -> None:
    path = tmp_path / "open.tflite"
    path.write_bytes(doubled((1,), (-1,)))
    options = armpy.RuntimeOptions(BACKENDS, program_cache_size=1)
    with armpy.Runtime(options) as runtime, load(path, backends=None, runtime=runtime) as model:
        assert answer(model, floats(1)) == [2]
        compiler.open_gate()
        assert answer(model, floats(1, 2, 3)) == [1 + ADDED, 2 + ADDED, 3 + ADDED]


@pytest.mark.slow
@pytest.mark.parametrize("is_given", [False, True])
def test_a_model_that_is_dropped_goes_while_it_is_compiled(
    compiler: GatedCompiler, path: Path, is_given: bool
) -> None:
    runtime = armpy.Runtime(armpy.RuntimeOptions(BACKENDS)) if is_given else None
    model = load(path, backends=None if is_given else BACKENDS, runtime=runtime)
    model.with_outputs(["middle"])
    seen = weakref.ref(model.runtime), weakref.ref(model.handle.loaded)
    wait_for(lambda: compiler.begun)
    del model, runtime
    gc.collect()
    assert [reference() for reference in seen] == [None, None]
    for pid in compiler.begun:
        await_end(pid)


def armpy_command(path: Path, *arguments: str) -> str:
    """What ``armpy run`` prints on a terminal."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ends = pty.openpty()
    command = [sys.executable, "-m", "armpy", "run", os.fspath(path), *arguments]
    with subprocess.Popen(command, stdout=ends[1], stderr=ends[1]) as process:
        os.close(ends[1])
        text = b""
        with contextlib.suppress(OSError):  # Linux' way to say that the other end is closed
            while part := os.read(ends[0], 4096):
                text += part
        os.close(ends[0])
    assert process.returncode == 0
    return text.decode()


@pytest.mark.slow
def test_the_command_answers_a_person_before_it_compiles(
    compiler: GatedCompiler, path: Path
) -> None:
    pytest.importorskip("click")
    compiler.open_gate()
    text = armpy_command(path)
    assert "CpuRef 2" in text
    assert "compiling for the next time" in text
    assert len(compiler.compiled) == 1
    assert "Gated 2" in armpy_command(path)
    assert len(compiler.compiled) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("--json",), ("--repeat", "2")],
)
def test_the_command_waits_where_programs_read_or_time_is_measured(
    compiler: GatedCompiler, path: Path, arguments: tuple[str, ...]
) -> None:
    pytest.importorskip("click")
    compiler.open_gate()
    text = armpy_command(path, *arguments)
    assert "Gated" in text
    assert "CpuRef 2" not in text
    assert "compiling for" not in text
