"""How executions of one process share its processors."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine import core_arbiter
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.runtime import threads
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.runtime.threads import Pool, pool

from armpy.backend import Cancellation
from armpy.errors import ExecutionCancelledError
from armpy.graph import SubgraphView

from .networks import convolutions, image, runtime_of
from .test_threads import num_workers, run_once, wait_until, worker_code


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Iterator[memoryview]:
    """The arbiter's words, which only the test and native code change."""
    monkeypatch.setattr(pool(), "_look", lambda: None)
    # Workers that are missing are started, however busy the machine is or was.
    monkeypatch.setattr(pool(), "_retry_at", -math.inf)
    monkeypatch.setattr(threads, "START_S", 60.0)
    words = pool()._arbiter
    before = [words[number] for number in (core_arbiter.LIMIT, core_arbiter.SEATS)]
    # How many executions ran side by side of late: earlier tests of this process had some.
    of_late = (core_arbiter.CROWD, core_arbiter.PEAK, core_arbiter.SINCE)
    for number in of_late:
        words[number] = 0
    yield words
    for number in (core_arbiter.ACTIVE, *of_late):
        words[number] = 0
    words[core_arbiter.LIMIT], words[core_arbiter.SEATS] = before


def code_of(num_threads: int, size: int = 48, num_layers: int = 4) -> LoadedCode:
    graph = convolutions(size, 40, num_layers).build()
    isa = host_isas()[0]
    return LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), isa, num_threads), isa)


def runner(
    code: LoadedCode, cancellation: Cancellation | None = None, size: int = 48
) -> tuple[Instance, Callable[[], None]]:
    """An instance whose times are taken, and what runs it."""
    instance = Instance(code, is_profiled=True)
    (x,) = image(size).values()
    result = np.empty(x.shape, np.float32)
    return instance, lambda: instance.run([x, result], cancellation)


def started(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def are_waiting(words: memoryview, number: int) -> bool:
    return bool(words[core_arbiter.WAITING] == number)


def assert_idle(words: memoryview) -> None:
    names = ("RUNNING", "ACTIVE", "WAITING", "FIRST", "LAST", "LOCK")
    of_executions = [getattr(core_arbiter, name) for name in names]
    assert [words[number] for number in of_executions] == [0] * len(of_executions)


@pytest.mark.slow
def test_eight_callers_of_one_network_progress_alike() -> None:
    counts = [0] * 8
    with runtime_of(2) as runtime:
        network = runtime.load_network(convolutions())
        runtime.enqueue_workload(network, image())
        end = time.monotonic() + 2

        def call(number: int) -> None:
            while time.monotonic() < end:
                runtime.enqueue_workload(network, image())
                counts[number] += 1

        for thread in [started(partial(call, number)) for number in range(8)]:
            thread.join()
    assert max(counts) <= 3 * min(counts) + 2, counts
    assert_idle(pool()._arbiter)


def test_no_more_executions_run_than_there_are_seats(words: memoryview) -> None:
    words[core_arbiter.SEATS] = 1
    code, seen = code_of(1), set[tuple[int, bool]]()
    is_over = threading.Event()

    def call() -> None:
        _, run = runner(code)
        while not is_over.is_set():
            run()

    callers = [started(call) for _ in range(6)]
    end = time.monotonic() + 10
    while (1, True) not in seen and time.monotonic() < end:
        seen.update(
            (words[core_arbiter.ACTIVE], words[core_arbiter.WAITING] > 0) for _ in range(100)
        )
    is_over.set()
    for caller in callers:
        caller.join()
    assert (1, True) in seen
    assert max(active for active, _ in seen) == 1
    assert_idle(words)


def test_those_who_wait_go_in_as_they_came(words: memoryview) -> None:
    code = code_of(1)
    _, warm = runner(code)
    warm()
    words[core_arbiter.SEATS] = words[core_arbiter.ACTIVE] = 1  # another execution's
    instances, callers = [], []
    for number in range(5):
        instance, run = runner(code)
        instances.append(instance)
        callers.append(started(run))
        wait_until(partial(are_waiting, words, number + 1))
    let_the_first_in(words, code)
    for caller in callers:
        caller.join()
    begins = [int(instance.times_ns[0]) for instance in instances if instance.times_ns is not None]
    assert begins == sorted(begins)
    assert len(set(begins)) == 5
    assert_idle(words)


def let_the_first_in(words: memoryview, code: LoadedCode) -> None:
    """Have an execution that does not wait come and go."""
    words[core_arbiter.ACTIVE] = 0
    code.is_patient = False
    _, run = runner(code)
    run()


def test_a_cancelled_execution_does_not_wait_on(words: memoryview) -> None:
    code = code_of(1)
    words[core_arbiter.SEATS] = words[core_arbiter.ACTIVE] = 1
    cancellations = [Cancellation() for _ in range(3)]
    stopped: list[int] = []

    def call(number: int) -> None:
        try:
            runner(code, cancellations[number])[1]()
        except ExecutionCancelledError:
            stopped.append(number)

    callers = []
    for number in range(3):
        callers.append(started(partial(call, number)))
        wait_until(partial(are_waiting, words, number + 1))
    for number, left in ((1, 2), (2, 1)):  # from the middle, and from the end
        cancellations[number].cancel()
        callers[number].join(timeout=10)
        assert words[core_arbiter.WAITING] == left
    let_the_first_in(words, code)
    callers[0].join()
    assert stopped == [1, 2]
    assert_idle(words)


@pytest.mark.slow
def test_short_programs_do_not_wait(words: memoryview) -> None:
    words[core_arbiter.SEATS] = words[core_arbiter.ACTIVE] = 1
    run_once_small = code_of(1, size=4, num_layers=1)
    assert not run_once_small.is_patient
    runner(run_once_small, size=4)[1]()
    assert words[core_arbiter.WAITING] == 0


@pytest.mark.slow
def test_a_long_execution_lets_workers_go_once_another_one_comes(words: memoryview) -> None:
    words[core_arbiter.LIMIT], words[core_arbiter.SEATS] = 2, 5
    _, alone = runner(code_of(1, size=96, num_layers=60), size=96)
    _, run = runner(code_of(2, size=96, num_layers=60), size=96)
    wait_until(lambda: pool().engage(2, worker_code()) == 2)
    first = started(run)
    wait_until(lambda: words[core_arbiter.RUNNING] == 2)
    second = started(alone)
    wait_until(lambda: words[core_arbiter.ACTIVE] == 2)
    wait_until(
        lambda: words[core_arbiter.RUNNING] == 2
    )  # there were three, for as long as a command
    assert words[core_arbiter.ACTIVE] == 2
    first.join()
    second.join()
    assert_idle(words)


def test_two_executions_have_half_of_the_processors_each(words: memoryview) -> None:
    words[core_arbiter.LIMIT] = 6
    owner = threading.Event()
    pool().hold(owner)
    words[core_arbiter.ACTIVE] = 1
    assert pool().engage(6, worker_code()) == 3
    words[core_arbiter.ACTIVE] = 0
    assert pool().engage(6, worker_code()) == 6


def test_an_execution_has_no_more_threads_than_processors_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, workers_of_all = threading.Event(), Pool()
    workers_of_all.hold(owner)
    for num_cores in (3, 1, 2):
        monkeypatch.setattr(threads, "usable_cores", partial(int, num_cores))
        workers_of_all._look_at = 0.0  # some seconds have passed
        assert workers_of_all.engage(4, worker_code()) == num_cores


def test_a_thread_that_dies_before_it_runs_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alone = run_once(1)
    monkeypatch.setattr(pool(), "_retry_at", -math.inf)  # and later tests may start workers
    pool()._stop()  # workers of networks that are not collected yet would do
    begun: list[Callable[[], None]] = []

    def vanish(function: Callable[[], None], _: tuple[()]) -> int:
        begun.append(function)
        return 0

    monkeypatch.setattr(threads, "start_new_thread", vanish)
    monkeypatch.setattr(threads, "START_S", 0.05)
    with runtime_of(2) as runtime:
        network = runtime.load_network(convolutions())
        for _ in range(3):
            (result,) = runtime.enqueue_workload(network, image()).values()
            np.testing.assert_array_equal(result, alone)
        assert len(begun) == 1  # and no other one is tried for a while
        assert num_workers() == 0
        begun[0]()  # it comes up after all, and ends
    assert "executions go on with 1 threads: no thread came up in 0.05 s" in caplog.text


def test_a_worker_whose_thread_ends_at_once_delays_nothing() -> None:
    words = memoryview(bytearray(8 * threads.TICKET_WORDS)).cast("q")
    worker = threads.WorkerThread(None, 0, words)  # type: ignore[arg-type]  # it is never called
    worker.words[3] = 1  # asked to stop
    assert worker.start(10)
    worker.join()
