"""Libraries with start and wait: several executions at once, deadlines, cancellation, faults."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from armpy import Model, Runtime, RuntimeOptions
from armpy.backend import Cancellation, IEngineProgram, cancellable
from armpy.errors import (
    ArmpyError,
    BackendError,
    BackendUnavailableError,
    DeadObjectError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
)
from armpy.graph import SubgraphView
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit

from .sample_library import build, expected, network, runtime_of
from .starting_library import StartingLibrary, starting_source

pytest.importorskip("armpy_native")

from armpy_native import open_library, started

pytestmark = pytest.mark.slow

ONES = np.ones((2, 8), np.float32)


@pytest.fixture
def library(tmp_path: Path) -> StartingLibrary:
    return StartingLibrary(tmp_path)


def program_of(path: Path) -> IEngineProgram:
    """The layers that the sample has, compiled."""
    backend = open_library(str(path))()
    graph = network()
    view = SubgraphView.of(graph, graph.layers[:3])
    engine = backend.get_engine()
    return engine.compile(backend.convert(view), engine.describe({}))


def execute(program: IEngineProgram) -> None:
    program.execute([ONES], [np.empty((2, 4), np.float32)])


def test_executions_are_started_and_their_results_are_those_of_execute(
    library: StartingLibrary,
) -> None:
    with runtime_of(library.path) as runtime, Model(network(), runtime) as model:
        for number in range(3):
            np.testing.assert_allclose(model(number * ONES), expected(number * ONES), rtol=1e-5)
        x, y = np.zeros((2, 8), np.float32), np.empty((2, 4), np.float32)
        execution = model.bind({"x": x}, {"y": y})
        before = library["num_started"]
        for number in range(3):
            x[:] = number
            execution()
            np.testing.assert_allclose(y, expected(x), rtol=1e-5)
    assert library["num_started"] == before + 3
    assert library["num_under_way"] == 0


def test_several_executions_of_a_program_are_under_way_at_once(library: StartingLibrary) -> None:
    inputs = [number * ONES for number in range(4)]
    with (
        runtime_of(library.path, execution_threads=4) as runtime,
        Model(network(), runtime) as model,
    ):
        model(ONES)
        library["num_needed"] = 4  # none computes before four have begun
        futures = [model.start({"x": x}) for x in inputs]
        for x, future in zip(inputs, futures, strict=True):
            np.testing.assert_allclose(future.result(60)["y"], expected(x), rtol=1e-5)
    assert library["most_under_way"] == 4


def test_an_execution_stops_at_its_deadline_or_when_it_is_cancelled(
    library: StartingLibrary,
) -> None:
    with runtime_of(library.path) as runtime, Model(network(), runtime) as model:
        model(ONES)
        library["num_needed"] = 99
        num_started = library["num_started"]
        while library["num_started"] == num_started:  # on a busy machine it can pass before
            with pytest.raises(ExecutionTimeoutError):
                model.run({"x": ONES}, deadline_s=0.1)
        library.wait_until("num_cancelled", library["num_started"] - num_started)
        library.wait_until("num_under_way", 0)
        future = model.start({"x": ONES})
        library.wait_until("num_under_way", 1)
        assert future.cancel()
        library.wait_until("num_cancelled", library["num_started"] - num_started)
        library["num_needed"] = 1
        np.testing.assert_allclose(model(ONES), expected(ONES), rtol=1e-5)
        with cancellable(Cancellation()) as cancellation:
            cancellation.cancel()
            library["num_needed"] = 99
            program = program_of(library.path)
            with pytest.raises(ExecutionCancelledError, match="AcmeNpu / wait: cancelled"):
                execute(program)


@pytest.mark.nightly
def test_a_library_with_start_keeps_to_the_contract(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    build(tmp_path, starting_source(), "Acme_Npu_backend.so", "-pthread")
    result = run_conformance(
        "AcmeNpu",
        runtime_options=RuntimeOptions(dynamic_backends_path=tmp_path),
        filter=part_of_kit("FullyConnected/", "contract/threads", "contract/bound"),
    )
    assert result.is_passed, (result.shortcomings, result.problems)


def test_a_program_is_released_after_its_executions(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    text = starting_source()
    for head, word in (
        ("static void close_device(ap_device *device)\n{", "close"),
        ("static void release(ap_program *program)\n{", "release"),
        ("    int32_t status = event->status;\n", "end"),
    ):
        note = (
            f'{head}\n    {{ FILE *f = fopen("{notes}", "a"); fputs("{word}\\n", f); fclose(f); }}'
        )
        assert text.count(head) == 1
        text = text.replace(head, note)
    library = StartingLibrary(tmp_path, text)
    runtime = runtime_of(library.path)
    model = Model(network(), runtime)
    model(ONES)
    notes.write_text("")
    library["num_needed"] = 99
    future = model.start({"x": ONES})
    library.wait_until("num_under_way", 1)
    model.close()
    runtime.close()
    del model, runtime
    gc.collect()
    assert notes.read_text() == ""
    library["num_needed"] = 1
    library.wait_until("num_under_way", 0)
    np.testing.assert_allclose(future.result(60)["y"], expected(ONES), rtol=1e-5)
    del future
    gc.collect()
    assert notes.read_text().split() == ["end", "release", "close"]


def test_a_failure_on_the_device_is_the_error_of_wait(library: StartingLibrary) -> None:
    program = program_of(library.path)
    library["failure"] = 3
    with pytest.raises(ArmpyError, match="AcmeNpu / wait: bad voltage"):
        execute(program)
    library["failure"] = 77
    with pytest.raises(BackendError, match=r"the status 77 is not an ap_status \(bad voltage\)"):
        execute(program)
    library["failure"] = 0
    execute(program)
    assert library["num_under_way"] == 0


FAULTS = {
    "start fails": (
        "    ap_event *made = calloc(1, sizeof *made);\n",
        '    return fail(error, AP_OUT_OF_MEMORY, "full");\n    ap_event *made = NULL;\n',
        "AcmeNpu / start: full",
    ),
    "start gives no event": (
        "    *event = made;\n",
        "    *event = NULL;\n",
        "AcmeNpu / start: returned no event",
    ),
    "an unknown status of start": (
        "    ap_event *made = calloc(1, sizeof *made);\n",
        "    return -3;\n    ap_event *made = NULL;\n",
        r"AcmeNpu / start: .*the status -3 is not an ap_status \(no text\)",
    ),
    "wait does not wait": (
        "    if (!has_ended)\n",
        "    if (has_ended)\n",
        "AcmeNpu / wait: the execution does not end",
    ),
    "a text of wait that says to be longer than it may": (
        "    *error = event->error;\n",
        "    memset(error->text, 'x', sizeof error->text);\n"
        "    error->used = 4000000000u;\n    status = AP_INTERNAL;\n",
        "AcmeNpu / wait: x{1008}",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_start_or_wait_is_named(tmp_path: Path, fault: str) -> None:
    old, new, reason = FAULTS[fault]
    text = starting_source()
    assert text.count(old) == 1
    path = build(tmp_path, text.replace(old, new), "libacme.so", "-w", "-pthread")
    program = program_of(path)
    with pytest.raises(ArmpyError, match=reason):
        execute(program)
    if fault in ("start gives no event", "wait does not wait"):  # the running work is unknown
        with pytest.raises(DeadObjectError, match=f"the device is lost: {reason}"):
            execute(program)


def test_start_without_wait_is_refused(tmp_path: Path) -> None:
    text = starting_source().replace("    wait_for,\n};", "    NULL,\n};")
    with pytest.raises(BackendUnavailableError, match=r"start and wait.*both or neither"):
        open_library(str(build(tmp_path, text, "libacme.so", "-w", "-pthread")))


def test_a_device_that_does_not_stop_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started, "STOP_S", 0.05)
    text = starting_source().replace("if (*event->cancel)", "if (0)")
    library = StartingLibrary(tmp_path, text)
    program = program_of(library.path)
    library["num_needed"] = 99
    with cancellable(Cancellation()) as cancellation:
        cancellation.cancel()
        with pytest.raises(BackendError, match=r"wait: .*not ended 0\.05 s after it was cancelled"):
            execute(program)
    with pytest.raises(DeadObjectError, match="AcmeNpu / execute: the device is lost"):
        execute(program)
    with pytest.raises(DeadObjectError, match="AcmeNpu / supported: the device is lost"):
        program_of(library.path)
    library["num_needed"] = 1  # the thread goes on with memory that is still there
    library.wait_until("num_under_way", 0)


def test_one_event_for_two_executions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started, "_REUSE_S", 0.05)
    text = starting_source().replace(
        "    ap_event *made = calloc(1, sizeof *made);\n",
        "    static ap_event *last;\n    if (last) { *event = last; return AP_OK; }\n"
        "    ap_event *made = last = calloc(1, sizeof *made);\n",
    )
    library = StartingLibrary(tmp_path, text)
    program = program_of(library.path)
    library["num_needed"] = 99
    result = np.empty((2, 4), np.float32)
    first = threading.Thread(target=program.execute, args=([ONES], [result]))
    first.start()
    library.wait_until("num_under_way", 1)
    with pytest.raises(BackendError, match="start: returned the event of another execution"):
        execute(program)
    library["num_needed"] = 1
    first.join()
    wanted = StartingLibrary(tmp_path, name="libsound.so")
    other = np.empty((2, 4), np.float32)
    program_of(wanted.path).execute([ONES], [other])
    np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("function", ["start", "wait_for"])
def test_a_crash_of_start_or_wait_in_a_process_of_its_own_is_contained(
    tmp_path: Path, function: str
) -> None:
    text = starting_source()
    begin = text.index("{", text.index(f"static int32_t {function}(")) + 1
    tmp_path.chmod(0o700)
    text = f"{text[:begin]}\n    abort();{text[begin:]}"
    build(tmp_path, text, "Acme_Npu_backend.so", "-w", "-pthread")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=tmp_path,
        isolation={"AcmeNpu": "process"},
    )
    with Runtime(options) as runtime:  # other backends take its layers
        np.testing.assert_allclose(Model(network(), runtime)(ONES), expected(ONES), rtol=1e-5)
