"""Executions end when they are cancelled, wherever they are, and leak nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pytest

from armpy.errors import (
    ExecutionCancelledError,
    ExecutionTimeoutError,
    InvalidArgumentError,
)
from armpy.execution import Execution
from armpy.execution.scheduling.deadlines import Deadlines, Watch
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.slow_backend import SlowBackend
from armpy_testing.models.networks import ADD, chain, f32, floats

LOOKS = pytest.mark.parametrize("looks", [True, False], ids=["stops", "abandoned"])


@pytest.fixture
def backend(looks: bool) -> Iterator[SlowBackend]:
    slow = SlowBackend(looks=looks)
    yield slow
    slow.gate.set()  # what was abandoned comes to its end


@pytest.fixture
def model(backend: SlowBackend) -> Model:
    """``y = x + 2`` on vectors of 4, in two layers."""
    return Model(chain(2), runtime_of(backend))


def check_right(model: Model, backend: SlowBackend) -> None:
    """Check that the network works."""
    backend.gate.set()
    assert model.run({"x": floats(1, 2, 3, 4)}, deadline_s=60)["y"].tolist() == [3, 4, 5, 6]


Call: TypeAlias = Callable[[Model, dict[str, object], dict[str, object], float], object]
"""Executes with inputs, outputs and a deadline in seconds."""

CALLS: dict[str, Call] = {
    "run": lambda model, x, y, late: model.run(x, y, deadline_s=late),
    "start": lambda model, x, y, late: model.start(x, y, deadline_s=late).result(),
    "async": lambda model, x, y, late: asyncio.run(model.run_async(x, y, deadline_s=late)),
    "bound": lambda model, x, y, late: model.bind(x, y, deadline_s=late)(),
    "bound start": lambda model, x, y, late: model.bind(x, y).start(deadline_s=late).result(),
}


@LOOKS
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_deadline_ends_an_execution_and_the_next_one_is_right(
    call: Call, model: Model, backend: SlowBackend, looks: bool
) -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    started = time.perf_counter()
    with pytest.raises(
        ExecutionTimeoutError,
        match=r"stopped at its deadline\. Expected .* end within 0\.02 s",
    ):
        call(model, {"x": x}, {"y": y}, 0.02)
    assert time.perf_counter() - started >= 0.02
    check_right(model, backend)
    assert y.tolist() == [0, 0, 0, 0]
    assert call(model, {"x": x}, {"y": y}, 60) is not None
    assert y.tolist() == [3, 4, 5, 6]


@LOOKS
def test_what_is_abandoned_writes_to_no_array_of_the_callers(
    model: Model, backend: SlowBackend
) -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    execution = model.bind({"x": x}, {"y": y})
    future = execution.start()
    backend.entered.wait()
    assert future.cancel()
    with pytest.raises(ExecutionCancelledError, match="cancelled"):
        future.result()
    ended = backend.num_ended
    backend.gate.set()
    assert execution()["y"].tolist() == [3, 4, 5, 6]  # in memory of its own
    y[:] = 0
    deadline = time.monotonic() + 5
    while not backend.looks and backend.num_ended < ended + 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert y.tolist() == [0, 0, 0, 0]


@LOOKS
def test_cancel_stops_a_call_in_another_thread(model: Model, backend: SlowBackend) -> None:
    execution = model.bind({"x": floats(1, 2, 3, 4)}, cancellable=True)
    assert not execution.cancel()  # nothing is under way

    def cancel() -> None:
        backend.entered.wait()
        assert execution.cancel()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    with pytest.raises(ExecutionCancelledError, match="cancelled"):
        execution()
    thread.join()
    assert not execution.cancel()
    backend.gate.set()
    assert execution()["y"].tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("looks", [False])
def test_a_call_that_is_not_to_be_abandoned_ends_after_its_layer(
    model: Model, backend: SlowBackend
) -> None:
    execution = model.bind({"x": floats(1, 2, 3, 4)})

    def cancel() -> None:
        backend.entered.wait()
        assert execution.cancel()
        backend.gate.set()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    with pytest.raises(ExecutionCancelledError, match=r"add_1.*cancelled"):
        execution()
    thread.join()
    assert backend.order == ["add_0"]
    assert execution()["y"].tolist() == [3, 4, 5, 6]


@LOOKS
def test_what_waits_for_a_thread_is_cancelled_without_having_begun(backend: SlowBackend) -> None:
    model = Model(chain(1), runtime_of(backend, execution_threads=1))
    x = {"x": floats(1, 2, 3, 4)}
    first = model.start(x)
    backend.entered.wait()
    second, third = model.start(x, deadline_s=0.01), model.start(x)
    with pytest.raises(ExecutionTimeoutError, match="deadline"):
        second.result()
    assert not third.running()
    assert third.cancel()
    assert third.cancelled()
    with pytest.raises(ExecutionCancelledError, match="cancelled"):
        third.result()
    assert first.running()
    backend.gate.set()
    assert first.result()["y"].tolist() == [2, 3, 4, 5]
    assert not first.cancel()
    assert backend.order == ["add_0"]


@LOOKS
def test_a_task_that_is_cancelled_stops_its_run(model: Model, backend: SlowBackend) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(model.run_async({"x": floats(1, 2, 3, 4)}))
        while not backend.entered.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    check_right(model, backend)
    assert backend.order[:2] != ["add_0", "add_1"]  # it was not run to its end


@LOOKS
def test_futures_are_those_of_the_standard_library(model: Model, backend: SlowBackend) -> None:
    seen: list[object] = []
    future = model.start({"x": floats(1, 2, 3, 4)})
    assert isinstance(future, concurrent.futures.Future)
    future.add_done_callback(seen.append)
    assert not future.done()
    backend.gate.set()
    done, _ = concurrent.futures.wait([future], timeout=10)
    assert done == {future}
    assert seen == [future]
    assert future.result()["y"].tolist() == [3, 4, 5, 6]
    assert not future.cancelled()


@LOOKS
def test_a_callback_that_ends_its_thread_costs_others_neither_place_nor_deadline(
    backend: SlowBackend, caplog: pytest.LogCaptureFixture
) -> None:
    model, x = Model(chain(1), runtime_of(backend, execution_threads=1)), {"x": floats(1, 2, 3, 4)}
    with caplog.at_level(logging.ERROR, "armpy"):
        first = model.start(x)
        first.add_done_callback(lambda _: sys.exit(3))
        late = model.start(x, deadline_s=0.01)
        late.add_done_callback(lambda _: sys.exit(3))
        with pytest.raises(ExecutionTimeoutError, match="deadline"):
            model.start(x, deadline_s=0.02).result(30)
        backend.gate.set()
        assert model.start(x).result(30)["y"].tolist() == [2, 3, 4, 5]
    assert first.done()
    assert late.done()
    assert caplog.text.count("has failed") == 2


def test_the_thread_of_deadlines_sleeps_as_long_as_any_lock_can() -> None:
    deadlines, stopped = Deadlines(), threading.Event()
    never = Watch(float("inf"), lambda: None)
    deadlines.begin(never)
    deadlines.begin(Watch(time.perf_counter() + 0.01, stopped.set))
    assert stopped.wait(30)
    deadlines.end(never)


@LOOKS
def test_an_execution_is_started_once_at_a_time(model: Model, backend: SlowBackend) -> None:
    execution = model.bind({"x": floats(1, 2, 3, 4)})
    future = execution.start()
    with pytest.raises(InvalidArgumentError, match="under way already"):
        execution.start()
    with pytest.raises(InvalidArgumentError, match="under way already"):
        execution()
    backend.gate.set()
    assert future.result() is execution.outputs
    assert execution.start().result()["y"].tolist() == [3, 4, 5, 6]


@LOOKS
def test_a_variable_does_not_count_executions_that_were_stopped(backend: SlowBackend) -> None:
    model = Model(counter(), runtime_of(backend))
    execution = model.bind({"x": floats(1)})
    backend.gate.set()
    assert float(execution()["y"][0]) == 1
    backend.gate.clear()
    with pytest.raises(ExecutionTimeoutError):
        model.run({"x": floats(100)}, deadline_s=0.02)
    with pytest.raises(ExecutionTimeoutError):
        execution.start(deadline_s=0.02).result()
    backend.gate.set()
    assert float(execution()["y"][0]) == 2
    assert model.start({"x": floats(1)}).result()["y"].tolist() == [3]


def counter() -> Graph:
    """``y = sum of all x so far``."""
    net = Network()
    x = net.input("x", f32(1))
    total = net.variable("total", f32(1))
    y = net.add(ADD, x, total)
    net.assign(total, y)
    net.output("y", y)
    return net.build()


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", True])
@pytest.mark.parametrize("looks", [True])
def test_a_deadline_is_a_time(model: Model, wrong: object) -> None:
    x = {"x": floats(1, 2, 3, 4)}
    for call in (model.run, model.start, model.bind):
        with pytest.raises(InvalidArgumentError, match="deadline_s"):
            call(x, deadline_s=wrong)  # type: ignore[arg-type]  # on purpose


@LOOKS
def test_new_shapes_are_planned_within_the_deadline(backend: SlowBackend) -> None:
    backend.gate.set()
    model = Model(chain(2, (None,)), runtime_of(backend))
    for length in (3, 7):
        x = {"x": np.zeros(length, np.float32)}
        assert model.run(x, deadline_s=10)["y"].tolist() == [2] * length
        assert model.start(x, deadline_s=10).result()["y"].tolist() == [2] * length
    with pytest.raises(ExecutionTimeoutError):
        model.run({"x": np.zeros(9, np.float32)}, deadline_s=0)


@pytest.mark.slow
@pytest.mark.parametrize("looks", [False])
def test_more_than_can_be_abandoned_waits_and_keeps_its_deadline(
    model: Model, backend: SlowBackend
) -> None:
    x = {"x": floats(1, 2, 3, 4)}
    executions: list[Execution] = [model.bind(x, deadline_s=0.05) for _ in range(20)]
    for execution in executions:
        with pytest.raises(ExecutionTimeoutError):
            execution()
    assert len(backend.order) < 20
    check_right(model, backend)
    for execution in executions[:3]:
        assert execution()["y"].tolist() == [3, 4, 5, 6]
    assert model.start(x).result()["y"].tolist() == [3, 4, 5, 6]


@pytest.mark.slow
@pytest.mark.parametrize("looks", [True])
def test_threads_go_when_the_runtime_goes(backend: SlowBackend) -> None:
    backend.gate.set()
    others = set(threading.enumerate())
    for is_closed in (True, False):
        model = Model(chain(2), runtime_of(backend))
        model.start({"x": floats(1, 2, 3, 4)}).result()
        (thread,) = set(threading.enumerate()) - others
        if is_closed:
            model.runtime.close()
            with pytest.raises(InvalidArgumentError, match="closed"):
                model.runtime._executors.submit(None)  # type: ignore[arg-type]  # never looked at
        del model
        gc.collect()
        thread.join(5)
        assert not thread.is_alive()
