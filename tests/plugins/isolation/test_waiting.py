"""Executions that wait for a worker are stopped in time, and what they wait for goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armpy import Runtime
from armpy.errors import DeadObjectError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.model import Model
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import FaultyBackend
from armpy_testing.backends.injections import (
    LIMITS,
    await_spare,
    children,
    isolated,
    negation,
    negative,
    run,
)
from armpy_testing.descendants import kill

pytestmark = pytest.mark.slow

# Nothing is ended for being slow, as processors may be busy.
PATIENT = replace(LIMITS, timeout_s=120.0, grace_s=60.0)
WITHOUT_SPARE = replace(PATIENT, keep_spare=False)
LATE_S = 5.0
"""After which a wait has not been stopped, on the busiest machine; nothing here ends by itself."""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "gate"
    monkeypatch.setenv(faulty.GATE, str(path))
    yield path
    path.unlink(missing_ok=True)  # a worker that waits would stay for a while


def kill_worker(runtime: Runtime) -> None:
    pid = runtime.isolation[faulty.NAME].pid
    assert pid is not None
    kill(pid)


@contextmanager
def in_time() -> Iterator[None]:
    begun = time.perf_counter()
    yield
    assert time.perf_counter() - begun < LATE_S


def fail_once(runtime: Runtime, network: int) -> None:
    """Have the death of the worker noticed, by the execution that it costs."""
    with suppress(DeadObjectError):  # another execution may have noticed
        run(runtime, network, 0)


@pytest.mark.parametrize("make", [faulty.SlowAtStart, faulty.SlowInPreparation])
def test_deadline_counts_while_a_worker_starts_and_prepares(
    make: type[FaultyBackend], gate: Path
) -> None:
    with isolated(make, WITHOUT_SPARE) as runtime:
        network = runtime.load_network(negation())
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        gate.touch()
        kill_worker(runtime)
        fail_once(runtime, network)
        loaded = runtime.get_network(network)
        threads = threading.active_count()
        for _ in range(5):
            with in_time(), pytest.raises(ExecutionTimeoutError, match="at its deadline"):
                loaded.run([np.zeros(8, np.float32)], deadline_s=0.05)
        # Those that come wait for what the first has begun.
        assert threading.active_count() <= threads + 3
        gate.unlink()
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        assert runtime.isolation[faulty.NAME].num_failures == 1


def test_cancelling_stops_the_wait_for_a_worker(gate: Path) -> None:
    with (
        isolated(faulty.SlowAtStart, WITHOUT_SPARE) as runtime,
        Model(negation(), runtime) as model,
    ):
        numbers = np.zeros(8, np.float32)
        model.run({"x": numbers})
        gate.touch()
        kill_worker(runtime)
        with pytest.raises(DeadObjectError):
            model.run({"x": numbers})
        future = model.start({"x": numbers})
        time.sleep(0.1)
        with in_time():
            assert future.cancel()
            with pytest.raises((ExecutionCancelledError, CancelledError)):
                future.result()
        gate.unlink()
        np.testing.assert_array_equal(model.run({"x": numbers})["y"], -numbers)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_deadline_counts_while_a_spare_worker_does_not_answer() -> None:
    earlier = children()
    with isolated(faulty.StoppableBackend, PATIENT) as runtime:
        network = runtime.load_network(negation())
        await_spare()
        workers = set().union(*(children(keeper) for keeper in children() - earlier))
        (spare,) = workers - {runtime.isolation[faulty.NAME].pid}
        os.kill(spare, signal.SIGSTOP)
        kill_worker(runtime)
        fail_once(runtime, network)
        with in_time(), pytest.raises(ExecutionTimeoutError):
            runtime.get_network(network).run([np.zeros(8, np.float32)], deadline_s=0.05)
        os.kill(spare, signal.SIGCONT)
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))


def test_runtime_closes_while_a_worker_starts(gate: Path) -> None:
    with isolated(faulty.SlowAtStart, WITHOUT_SPARE) as runtime:
        network = runtime.load_network(negation())
        gate.touch()
        kill_worker(runtime)
        fail_once(runtime, network)
        with pytest.raises(ExecutionTimeoutError):
            runtime.get_network(network).run([np.zeros(8, np.float32)], deadline_s=0.05)
        with in_time():
            runtime.close()


def test_execution_without_a_deadline_waits_for_the_worker(gate: Path) -> None:
    with isolated(faulty.SlowAtStart, WITHOUT_SPARE) as runtime:
        network = runtime.load_network(negation())
        gate.touch()
        kill_worker(runtime)
        fail_once(runtime, network)
        opening = threading.Timer(0.5, gate.unlink)
        opening.start()
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        opening.join()
