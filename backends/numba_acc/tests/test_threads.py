from __future__ import annotations

import ctypes
import heapq
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.llvm.threads import fork_join
from armpy_numba_acc.machine import core_arbiter, execution
from armpy_numba_acc.machine.execution import Command
from armpy_numba_acc.machine.layout import word_of
from armpy_numba_acc.machine.processors.cores import MOST_THREADS
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.program import ProgramTiming
from armpy_numba_acc.runtime import threads
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.runtime.threads import WORKER, Pool, pool
from armpy_numba_acc.store.objects import kernel_addresses

from armpy.graph import SubgraphView
from armpy.ops.operation import Array

from .networks import convolutions, image, runtime_of, small
from .support import run_apart


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let executions have more threads than this machine has processors."""
    monkeypatch.setattr(threads, "usable_cores", lambda: 8)
    pool()._look_at = -math.inf
    yield
    pool()._look_at = -math.inf


def num_workers() -> int:
    """Threads that are NumbaAcc's."""
    return pool().num_workers


def test_threads_that_ask_first_at_the_same_time_get_the_same_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = threading.Barrier(4)

    def make() -> object:
        together.wait(30)  # in the middle of making it, all have asked
        return object()

    with monkeypatch.context() as patched, ThreadPoolExecutor(4) as askers:
        patched.setattr(threads, "_pools", {})
        patched.setattr(threads, "Pool", make)
        assert len({*askers.map(lambda _: pool(), range(4))}) == 1


def worker_code() -> int:
    """Address of what workers run."""
    return kernel_addresses([WORKER], host_isas()[0])[WORKER]


def run_once(num_threads: int) -> Array:
    with runtime_of(num_threads) as runtime:
        network = runtime.load_network(convolutions())
        (result,) = runtime.enqueue_workload(network, image()).values()
    return result


@pytest.mark.sampled(7)
@pytest.mark.parametrize("num_threads", [2, 3, 7])
def test_the_number_of_threads_changes_no_result(num_threads: int) -> None:
    alone = run_once(1)
    for _ in range(20):  # workers come at different times
        np.testing.assert_array_equal(run_once(num_threads), alone)


def test_workers_start_with_the_first_run_and_end_with_the_last_network() -> None:
    assert num_workers() == 0
    runtime = runtime_of(3)
    first, second = (runtime.load_network(convolutions()) for _ in range(2))
    assert num_workers() == 0
    for network in (first, second, first):
        runtime.enqueue_workload(network, image())
        assert num_workers() == 2
    runtime.unload_network(first)
    assert num_workers() == 2
    runtime.unload_network(second)
    assert num_workers() == 0


def test_workers_come_back_with_another_network() -> None:
    for _ in range(3):
        assert run_once(2).shape == (1, 48, 48, 40)
        assert num_workers() == 0


def test_small_networks_and_single_threads_start_no_workers() -> None:
    with runtime_of(2) as runtime:
        network = runtime.load_network(small())
        runtime.enqueue_workload(network, {"x": np.ones((1, 8), np.float32)})
        assert num_workers() == 0
    with runtime_of(1) as runtime:
        runtime.enqueue_workload(runtime.load_network(convolutions()), image())
        assert num_workers() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("num_callers", "num_threads"), [(8, 2), (2, 4)])
def test_many_callers_get_the_results_of_one(num_callers: int, num_threads: int) -> None:
    alone = {seed: run_once_of(seed) for seed in range(8)}
    errors: list[BaseException] = []
    end = time.monotonic() + 3
    with runtime_of(num_threads) as runtime:
        networks = [runtime.load_network(convolutions()) for _ in range(2)]

        def call(seed: int) -> None:
            try:
                while time.monotonic() < end:
                    for network in networks:
                        (result,) = runtime.enqueue_workload(network, image(seed=seed)).values()
                        np.testing.assert_array_equal(result, alone[seed])
            except BaseException as error:  # noqa: BLE001  # raised below, in the main thread
                errors.append(error)

        callers = [threading.Thread(target=call, args=(seed,)) for seed in range(num_callers)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert num_workers() == num_threads - 1
    assert errors == []
    assert num_workers() == 0


def run_once_of(seed: int) -> Array:
    with runtime_of(1) as runtime:
        network = runtime.load_network(convolutions())
        (result,) = runtime.enqueue_workload(network, image(seed=seed)).values()
    return result


def test_workers_that_are_busy_are_not_waited_for() -> None:
    workers_of_all = Pool()
    owner = threading.Event()  # anything that can be referred to
    workers_of_all.hold(owner)
    assert workers_of_all.engage(2, worker_code()) == 2
    workers_of_all._arbiter[core_arbiter.ACTIVE] = 8  # as executions' native code does
    assert workers_of_all.engage(2, worker_code()) == 1
    workers_of_all._arbiter[core_arbiter.ACTIVE] = 0
    assert workers_of_all.engage(3, worker_code()) == 3
    assert workers_of_all.num_workers == 2
    del owner
    assert workers_of_all.num_workers == 0


def test_a_worker_that_has_gone_to_sleep_comes_back() -> None:
    graph = convolutions().build()
    isa = host_isas()[0]
    code = LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), isa, 2), isa)
    sleepy = Instance(code)
    (x,) = image().values()
    result, again = (np.empty(x.shape, np.float32) for _ in range(2))
    sleepy.run([x, result])
    wait_until(lambda: bool(pool()._words[1]))
    sleepy.run([x, again])
    np.testing.assert_array_equal(again, result)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own() -> None:
    alone = run_once(1)
    with runtime_of(2) as runtime:
        network = runtime.load_network(convolutions())
        runtime.enqueue_workload(network, image())
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answer = b"n"
                assert num_workers() == 0
                for _ in range(3):
                    (result,) = runtime.enqueue_workload(network, image()).values()
                    np.testing.assert_array_equal(result, alone)
                assert num_workers() == 1
                runtime.close()
                answer = b"y" if num_workers() == 0 else b"t"
            finally:
                os.write(writer, answer)
                os._exit(0)
        answer = os.read(reader, 1)
        os.waitpid(child, 0)
        (result,) = runtime.enqueue_workload(network, image()).values()
    os.close(reader)
    os.close(writer)
    assert answer == b"y"
    np.testing.assert_array_equal(result, alone)


def test_an_execution_runs_alone_if_others_took_the_workers_meanwhile() -> None:
    graph = convolutions().build()
    isa = host_isas()[0]
    code = LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), isa, 2), isa)
    execution = Instance(code)
    (x,) = image().values()
    together, alone = (np.empty(x.shape, np.float32) for _ in range(2))
    execution.run([x, together])
    words = pool()._words
    assert words[threads._OWNER] == 0
    words[threads._OWNER] = 1
    execution.run([x, alone])
    owner = words[threads._OWNER]  # an execution that had taken the worker had freed it, too
    words[threads._OWNER] = 0
    assert owner == 1
    np.testing.assert_array_equal(alone, together)
    assert pool()._arbiter[core_arbiter.RUNNING] == 0


INTERRUPTED = """
import gc
import signal
from contextlib import suppress
from threading import Thread

import numpy as np
from armpy_numba_acc.machine import core_arbiter
from armpy_numba_acc.runtime import threads
from .networks import convolutions, image, runtime_of
from .test_threads import num_workers

signal.signal(signal.SIGALRM, signal.default_int_handler)
moments = np.random.default_rng(0)
with runtime_of(2) as runtime:
    network = runtime.load_network(convolutions(24, 16, 3))
    (alone,) = runtime.enqueue_workload(network, image(24, 16)).values()
    try:
        for _ in range(200):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 1e-3))
                for _ in range(20):  # an interrupt that a finaliser gets is lost
                    runtime.enqueue_workload(network, image(24, 16))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert threads.pool()._arbiter[core_arbiter.ACTIVE] == 0
    other = Thread(target=threads.pool().hold, args=(runtime,), daemon=True)
    other.start()
    other.join(10)
    assert threads.pool()._turn and not other.is_alive()
    (result,) = runtime.enqueue_workload(network, image(24, 16)).values()
    np.testing.assert_array_equal(result, alone)
del runtime
gc.collect()  # tracebacks refer to each other
assert num_workers() == 0
print("sound")
"""


FORKED = """
import os, signal, threading
import armpy
from .networks import convolutions, image, runtime_of

def run() -> None:
    with runtime_of(1) as runtime:
        runtime.enqueue_workload(runtime.load_network(convolutions()), image())

compiling = threading.Event()
with armpy.watch_progress(lambda step: compiling.set()):
    thread = threading.Thread(target=run)
    thread.start()
    assert compiling.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        run()
        os._exit(0)
    thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_forks_while_kernels_are_compiled_has_a_child_that_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    done = run_apart(FORKED)
    assert done.stdout == "0\n", done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such signals")
def test_interrupts_at_any_time_leave_workers_that_run_and_stop() -> None:
    done = run_apart(INTERRUPTED)
    assert done.stdout == "sound\n", done.stderr


def test_threads_that_cannot_be_started_are_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alone = run_once(1)

    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", refuse)
    monkeypatch.setattr(pool(), "_retry_at", -math.inf)  # and later tests may start workers
    np.testing.assert_array_equal(run_once(3), alone)
    assert "executions go on with 1 threads: can't start new thread" in caplog.text


CAN_PLACE = hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1


@pytest.mark.skipif(not CAN_PLACE, reason="threads cannot be placed here")
def test_a_worker_that_is_awake_leaves_the_processor_that_its_leader_was_moved_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = threading.Event()
    pool().hold(owner)
    pool().engage(2, worker_code())
    (worker,) = pool()._workers
    assert worker.native_id is not None
    monkeypatch.setattr(threads, "_ASLEEP", threads._STOP)  # as if it never slept
    for processor in sorted(os.sched_getaffinity(0))[:2]:
        monkeypatch.setattr(threads, "current_processor", partial(int, processor))
        pool().engage(2, worker_code())
        assert processor not in os.sched_getaffinity(worker.native_id)


@pytest.mark.skipif(not CAN_PLACE, reason="threads cannot be placed here")
def test_a_worker_that_is_late_with_its_shares_is_fetched_and_let_go() -> None:
    graph, isa = convolutions().build(), host_isas()[0]
    code = LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), isa, 2), isa)
    execution = Instance(code)
    (x,) = image().values()
    tensors = [x, np.empty(x.shape, np.float32)]
    execution.run(tensors)
    worker = pool()._workers[0].native_id
    assert worker is not None
    mine = os.sched_getaffinity(0)
    before = os.sched_getaffinity(worker)
    leaders = {min(mine - before)}
    seen = []

    def share(args: int, shares: int, num_shares: int) -> None:
        """Take as long as it takes the leader to notice that the worker is late."""
        if threading.get_native_id() == worker:
            end = time.monotonic() + 10
            while os.sched_getaffinity(worker) != leaders and time.monotonic() < end:
                time.sleep(0.001)
            seen.append(os.sched_getaffinity(worker))
        else:
            time.sleep(0.02)  # until the worker has claimed some as well

    kernel = threads.FUNCTION(share)
    address = ctypes.cast(kernel, ctypes.c_void_p).value or 0
    execution._commands[:, word_of(Command, "function")] = address
    os.sched_setaffinity(0, leaders)
    try:
        execution.run(tensors)
    finally:
        os.sched_setaffinity(0, mine)
    assert seen
    assert all(processors == leaders for processors in seen)
    assert os.sched_getaffinity(worker) == before


def test_there_is_room_for_every_worker_that_an_option_can_ask_for() -> None:
    assert len(pool()._words) >= threads.TICKET_WORDS * (MOST_THREADS - 1)
    assert pool().tickets % execution.TICKET_BYTES == 0
    # Numbers of workers, from 1, fit what is 0 of the address of a team.
    assert MOST_THREADS <= execution.TICKET_BYTES


def test_no_two_places_of_the_shared_memory_are_one() -> None:
    last_byte_of_loops = execution.CONTROL + 8 * (execution.CONTROL_TURNS + 1)
    assert execution.FAILURE + 16 <= execution.CONTROL < last_byte_of_loops <= execution.SYNC_BYTES
    ticket = [0, execution.ASLEEP, execution.OWNER, execution.STOP, execution.SLEEP_LOCK]
    ticket += [execution.ACQUIRE, execution.NATIVE_ID, execution.FETCHED]
    published = [execution.PUBLISHED, execution.COMMAND, execution.COMMANDS, execution.CANCEL]
    published.append(execution.TEAM_THREADS)
    claims = [execution.CLAIMS, execution.DONE]
    # What different threads write lies in different lines.
    for line, places in enumerate((ticket, published, claims, [execution.HAS_CLAIMED])):
        assert len({place // 8 for place in places}) == len(places)
        assert {place // execution.LINE_BYTES for place in places} == {line}


def time_of_shares(speeds: Sequence[float], num_shares: int, claim: float = 0.0) -> float:
    """When the last thread ends, of work that takes one thread of speed 1 a time of 1.

    Parameters
    ----------
    claim
        What each claim costs the thread.
    """
    left, size_of = num_shares, fork_join.claim_size.function  # type: ignore[attr-defined]
    times = [(0.0, number) for number in range(len(speeds))]
    while left:
        now, number = heapq.heappop(times)
        count = size_of(left, len(speeds))
        left -= count
        heapq.heappush(times, (now + claim + count / num_shares / speeds[number], number))
    return max(times)[0]


@pytest.mark.parametrize("num_threads", [2, 64])
def test_commands_have_shares_for_each_thread_but_no_tiny_ones(num_threads: int) -> None:
    isa, durations_us = host_isas()[0], np.array([1.0, 3.0, 12.0, 300.0, 1e5])
    graph = convolutions(4, 8, len(durations_us)).build()
    program = lower_region(SubgraphView.of(graph, graph.layers), isa, num_threads)
    num_commands = len(program.infos)
    timing = ProgramTiming(np.resize(durations_us, num_commands).tolist(), 2.0, 0.0)
    num_shares = LoadedCode(program, isa, timing=timing).num_shares()[: len(durations_us)]
    expected = {2: [0, 4, 4, 32, 32], 64: [0, 4, 16, 128, 1024]}
    assert num_shares.tolist() == expected[num_threads]


@pytest.mark.parametrize("num_threads", [2, 4, 8, 16, 64])
def test_threads_of_any_speed_end_together(num_threads: int) -> None:
    num_shares = 16 * num_threads
    for num_slow in range(num_threads):
        speeds = [1.0] * (num_threads - num_slow) + [1 / 3] * num_slow
        ideal = 1 / sum(speeds)
        # No thread ends later than the slowest one needs for one share.
        assert time_of_shares(speeds, num_shares) <= ideal + 3 / num_shares + 1e-9
    assert time_of_shares([1.0] * (num_threads - 1) + [1 / 3], 16 * num_threads) < 3 / num_threads
