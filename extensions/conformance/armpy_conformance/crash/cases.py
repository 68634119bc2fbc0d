"""The cases: actions that a backend must withstand."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress

from armpy.core.dataclass import dataclass
from armpy.errors import (
    ArmpyError,
    DeadObjectError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
)
from armpy.model import Model
from armpy_conformance.crash.networks import LARGE, SMALL, ZERO
from armpy_conformance.crash.scene import Expectation, Scene
from armpy_conformance.crash.system import LeakCheck, address_space_limit
from armpy_conformance.differential_run import FailureError

THREADS = 4
RUNS = 50
"""Executions of each thread."""

LOADS = 60
WORKER_KILLS = 4
STOPS = 60

Announce = Callable[[], None]
"""Says that the moment has come from which on the process may be killed."""


@dataclass(frozen=True, slots=True)
class CrashCase:
    """One thing that is done."""

    id: str
    run: Callable[[Scene, Announce], str]
    """Takes the scene and a callable by which it announces that it may be killed; its result
    names the action. It raises FailureError if something is wrong.
    """
    is_killed: bool = False
    """Whether its process is killed at a random time after the announcement; the case `AFTERWARDS`
    has to succeed then.
    """


def _in_threads(works: Sequence[Callable[[], object]]) -> None:
    """Do several things at once; raise the error of the first one that fails."""
    gate = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> None:
        gate.wait()
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(begin, work) for work in works]:
            future.result()


def parallel_on_one_network(scene: Scene, _: Announce) -> str:
    """Several threads execute one loaded network with different inputs."""
    model, expectations = scene.model(), scene.expectations

    def work(first: int) -> None:
        for number in range(RUNS):
            scene.run(model, expectations[(first + number) % len(expectations)])

    _in_threads([lambda first=i: work(first) for i in range(THREADS)])  # type: ignore[misc]
    return f"{RUNS} executions on each of {THREADS} threads"


def parallel_on_many_networks(scene: Scene, _: Announce) -> str:
    """Several threads execute a loaded network each."""
    runtime, expectations = scene.runtime(), scene.expectations
    models = [scene.model(runtime=runtime) for _ in range(THREADS)]

    def work(index: int) -> None:
        for _ in range(RUNS):
            scene.run(models[index], expectations[index % len(expectations)])

    _in_threads([lambda index=i: work(index) for i in range(THREADS)])  # type: ignore[misc]
    return f"{RUNS} executions on each of {THREADS} networks"


def parallel_runtimes(scene: Scene, _: Announce) -> str:
    """Several threads make a runtime, load, execute and close, again and again."""
    expectations = scene.expectations

    def work(index: int) -> None:
        for _ in range(3):
            with scene.runtime() as runtime:
                for _ in range(5):
                    scene.run(scene.model(runtime=runtime), expectations[index])

    _in_threads([lambda index=i: work(index) for i in range(THREADS)])  # type: ignore[misc]
    return f"3 runtimes with 5 loads on each of {THREADS} threads"


def loads_in_a_row(scene: Scene, _: Announce) -> str:
    """Loads, executes and unloads many times; nothing may leak."""
    runtime, expectations = scene.runtime(), scene.expectations
    left: LeakCheck | None = None
    for number in range(LOADS):
        with scene.model(runtime=runtime) as model:
            scene.run(model, expectations[number % len(expectations)])
        if number == LOADS // 4:  # one-time objects exist now
            left = LeakCheck()
    problem = "" if left is None else left.problem()
    if problem:
        raise FailureError(f"{LOADS - LOADS // 4} loads leaked {problem}")
    return f"{LOADS} loads"


def loads_at_once(scene: Scene, _: Announce) -> str:
    """Many networks are loaded at the same time, by several threads, and execute then."""
    runtime, expectations = scene.runtime(), scene.expectations
    models = [[scene.model(runtime=runtime)] for _ in range(THREADS)]

    def work(index: int) -> None:
        for _ in range(LOADS // THREADS):
            models[index].append(scene.model(runtime=runtime))

    _in_threads([lambda index=i: work(index) for i in range(THREADS)])  # type: ignore[misc]
    everything = [model for some in models for model in some]
    for number, model in enumerate(everything):
        scene.run(model, expectations[number % len(expectations)])
    return f"{len(everything)} networks at once"


def large_inputs(scene: Scene, _: Announce) -> str:
    """Inputs of some 16 MiB."""
    (expectation,) = scene.expectations_of(LARGE)
    model = scene.model(LARGE)
    for _number in range(2):
        scene.run(model, expectation)
    size = sum(array.nbytes for array in expectation.feeds.values())
    return f"inputs of {size >> 20} MiB"


def zero_sized_inputs(scene: Scene, _: Announce) -> str:
    """A batch of no images, where the backend takes that, and a batch of some after it."""
    (expectation,) = scene.expectations_of(ZERO)
    runtime = scene.runtime()
    with suppress(FailureError):  # it may say that it does not take these
        scene.model(ZERO, runtime)
    scene.run(Model(scene.graph(ZERO), runtime), expectation)
    scene.run(scene.model(runtime=runtime), scene.expectations[0])
    return "inputs without elements"


def random_cancellation(scene: Scene, _: Announce) -> str:
    """Executions are cancelled, or their deadlines come, at random times."""
    batch = 256
    (expectation,) = scene.expectations_of(batch)
    model = scene.model(batch)
    scene.run(model, expectation)
    started = time.perf_counter()
    scene.run(model, expectation)
    usual_s = max(time.perf_counter() - started, 1e-4)
    num_stopped = 0
    for number in range(STOPS):
        delay_s = float(scene.random.uniform(0, 1.5)) * usual_s
        future = model.start(
            dict(expectation.feeds), deadline_s=max(delay_s, 1e-6) if number % 2 else None
        )
        if not number % 2:
            time.sleep(delay_s)
            future.cancel()
        try:
            outputs = future.result(timeout=30)
        except (CancelledError, ExecutionCancelledError, ExecutionTimeoutError):
            num_stopped += 1
        except ArmpyError as error:
            raise FailureError(f"the execution was stopped with another error: {error}") from error
        else:
            scene.check(expectation, outputs)
        if number % 10 == 0:
            scene.run(model, expectation)
    scene.run(model, expectation)
    return f"{num_stopped} of {STOPS} executions were stopped"


def killed_while_executing(scene: Scene, announce: Announce) -> str:
    """Executes until the process is killed."""
    model, expectations = scene.model(), scene.expectations
    scene.run(model, expectations[0])
    announce()
    for number in range(1 << 62):
        scene.run(model, expectations[number % len(expectations)])
    return ""


def killed_while_loading(scene: Scene, announce: Announce) -> str:
    """Makes runtimes and loads networks until the process is killed."""
    expectations = scene.expectations
    announce()
    for number in range(1 << 62):
        with scene.runtime() as runtime:
            model = scene.model(SMALL + number % 16, runtime)
            model.close()
            scene.run(scene.model(runtime=runtime), expectations[0])
    return ""


def killed_workers(scene: Scene, _: Announce) -> str:
    """The backend has a process of its own, which is killed at random times."""
    runtime = scene.isolated_runtime()
    model, expectations = scene.model(runtime=runtime), scene.expectations
    scene.run(model, expectations[0])
    num_dead = num_killed = 0
    for number in range(WORKER_KILLS):
        pid = runtime.isolation[scene.backend_id].pid
        if pid is None:
            raise FailureError("the backend has no process of its own")
        delay_s = float(scene.random.uniform(0, 0.02))
        killer = threading.Timer(delay_s, _kill, (pid,))
        killer.start()
        until = time.perf_counter() + delay_s + 0.01
        while time.perf_counter() < until:
            expectation = expectations[number % len(expectations)]
            try:
                outputs = model.run(dict(expectation.feeds))
            except DeadObjectError:
                num_dead += 1
            else:
                scene.check(expectation, outputs)
        killer.join()
        num_killed += 1
        _run_soon(scene, model, expectations[0])
    return f"{num_killed} workers killed, {num_dead} executions ended with an error that says so"


def _kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _run_soon(scene: Scene, model: Model, expectation: Expectation) -> None:
    """Execute once and compare; a worker that has been killed may be noticed first."""
    try:
        outputs = model.run(dict(expectation.feeds))
    except DeadObjectError:
        return scene.run(model, expectation)
    return scene.check(expectation, outputs)


def afterwards(scene: Scene, _: Announce) -> str:
    """Return whether all works in a new process."""
    model = scene.model()
    for expectation in scene.expectations:
        scene.run(model, expectation)
    return "works in the next process"


def memory_pressure(scene: Scene, _: Announce) -> str:
    """Loads and executes with less and less memory left; every refusal is an error of armpy's."""
    batch = LARGE // 2
    (expectation,) = scene.expectations_of(batch)
    scene.run(scene.model(batch), expectation)  # one-time objects exist now
    num_right = num_refused = 0
    for left_mib in (256, 64, 32, 16, 8, 4, 2, 0):
        runtime = scene.runtime()
        with address_space_limit(left_mib << 20):
            try:
                with runtime:
                    outputs = scene.model(batch, runtime).run(dict(expectation.feeds))
            except (ArmpyError, MemoryError, FailureError):
                num_refused += 1
                continue
        scene.check(expectation, outputs)
        num_right += 1
    scene.run(scene.model(batch), expectation)
    return f"{num_right} right answers and {num_refused} refusals; right again with all memory"


def survey(scene: Scene, _: Announce) -> str:
    """Which networks the backend takes layers of."""
    return " ".join(scene.networks())


AFTERWARDS = CrashCase("afterwards", afterwards)
SURVEY = CrashCase("support", survey)

CASES = (
    CrashCase("parallel/one network", parallel_on_one_network),
    CrashCase("parallel/many networks", parallel_on_many_networks),
    CrashCase("parallel/many runtimes", parallel_runtimes),
    CrashCase("loads/in a row", loads_in_a_row),
    CrashCase("loads/at once", loads_at_once),
    CrashCase("inputs/large", large_inputs),
    CrashCase("inputs/zero-sized", zero_sized_inputs),
    CrashCase("cancellation/random", random_cancellation),
    CrashCase("killed/executing", killed_while_executing, is_killed=True),
    CrashCase("killed/loading", killed_while_loading, is_killed=True),
    CrashCase("killed/workers", killed_workers),
    CrashCase("memory/pressure", memory_pressure),
)
"""Everything that is done, in order."""
