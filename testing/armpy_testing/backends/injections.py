"""Injects faults into an isolated backend's process, and watches the process."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from armpy_reference import ReferenceBackend

from armpy import (
    BackendRegistry,
    DataType,
    IsolationLimits,
    Network,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    ops,
)
from armpy.errors import ArmpyError, DeadObjectError
from armpy.ops.operation import Array
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import FaultyBackend
from armpy_testing.descendants import kill

LIMITS = IsolationLimits(
    timeout_s=1.0, grace_s=0.1, memory_bytes=1 << 30, max_failures=10**9, quarantine_s=0.3
)
FROM_OUTSIDE = "killed from outside"
KINDS = (*faulty.FAULTS, FROM_OUTSIDE)


def negation(size: int = 8) -> Network:
    """A network that gives the negative of its one input."""
    net = Network("negation")
    operand = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    net.output("y", net.add(ops.ElementwiseUnary(ops.UnaryOperation.NEG), operand))
    return net


@contextmanager
def isolated(
    make: type[FaultyBackend] = FaultyBackend,
    limits: IsolationLimits = LIMITS,
    *,
    with_reference: bool = False,
    spread: str | None = None,
) -> Iterator[Runtime]:
    """A runtime with an isolated backend, and perhaps with CpuRef in this process."""
    registry = BackendRegistry()
    registry.register(faulty.NAME, make)
    registry.register("CpuRef", ReferenceBackend)
    options = RuntimeOptions(
        backends=[faulty.NAME, "CpuRef"] if with_reference else [faulty.NAME],
        registry=registry,
        isolation={faulty.NAME: "process"},
        isolation_limits=limits,
        spread=spread,
    )
    with Runtime(options) as runtime:
        yield runtime


def run(runtime: Runtime, network_id: int, first: float, size: int = 8) -> Array:
    """Negate numbers of which the first orders an event."""
    numbers = np.arange(size, dtype=np.float32)
    numbers[0] = first
    return runtime.enqueue_workload(network_id, {"x": numbers})["y"]


def negative(first: float, size: int = 8) -> Array:
    """What `run` should give."""
    expected = -np.arange(size, dtype=np.float32)
    expected[0] = -first
    return expected


@dataclass
class Outcome:
    """What became of injections."""

    # By kind of fault, from when the failure was noticed to the next right result
    recovery_s: list[tuple[str, float]] = field(default_factory=list)
    # How often executions ended in each class of error
    errors: Counter[str] = field(default_factory=Counter)
    # What should not be: wrong results, errors without a type of armpy's, faults without effect
    wrong: list[str] = field(default_factory=list)
    # Processes, descriptors and mappings of shared memory before and after that differ
    left: dict[str, tuple[int, int]] = field(default_factory=dict)


def inject(count: int, seed: int = 1) -> Outcome:
    """Inject faults, every fourth beside an execution of another network.

    Notes
    -----
    Each waits for the spare process, which is started in the background.
    """
    random_numbers, outcome = random.Random(seed), Outcome()
    with isolated() as runtime:  # loaded when it is first used
        run(runtime, runtime.load_network(negation()), 0)
    del runtime
    gc.collect()
    before = held()
    with isolated() as runtime:
        first, second = runtime.load_network(negation()), runtime.load_network(negation(16))
        for number in range(count):
            kind = random_numbers.choice(KINDS)
            _inject_one(runtime, (first, second), kind, outcome, has_company=number % 4 == 0)
    del runtime
    gc.collect()
    after = held()
    outcome.left = {n: (before[n], after[n]) for n in before if before[n] != after[n]}
    return outcome


def _inject_one(
    runtime: Runtime, networks: tuple[int, int], kind: str, outcome: Outcome, *, has_company: bool
) -> None:
    """Inject one fault, and execute rightly as soon as it is noticed."""
    await_spare()
    status = runtime.isolation[faulty.NAME]
    threads = [threading.Thread(target=_fail, args=(runtime, networks[0], kind, outcome))]
    if has_company:
        threads.insert(
            0, threading.Thread(target=_doze, args=(runtime, networks[1], kind, outcome))
        )
    threads[0].start()
    for thread in threads[1:]:
        time.sleep(faulty.DOZE_S / 6)
        thread.start()
    late_at = time.monotonic() + 30.0
    while runtime.isolation[faulty.NAME].num_failures == status.num_failures:
        if time.monotonic() > late_at:
            outcome.wrong.append(f"{kind}: not noticed")
            break
        time.sleep(0.0005)
    if not np.array_equal(run(runtime, networks[0], 0), negative(0)):
        outcome.wrong.append(f"{kind}: wrong result afterwards")
    now = time.perf_counter()
    outcome.recovery_s.append((kind, now - (runtime.isolation[faulty.NAME].last_failure_s or 0.0)))
    for thread in threads:
        thread.join()
    if runtime.isolation[faulty.NAME].num_failures != status.num_failures + 1:
        outcome.wrong.append(f"{kind}: not one failure")


def _fail(runtime: Runtime, network: int, kind: str, outcome: Outcome) -> None:
    """Execute what fails."""
    try:
        if kind == FROM_OUTSIDE:
            kill(runtime.isolation[faulty.NAME].pid or 0)
            run(runtime, network, faulty.FINE)
        else:
            run(runtime, network, faulty.FAULTS[kind])
            outcome.wrong.append(f"{kind}: no error")
    except ArmpyError as error:
        outcome.errors[type(error).__name__] += 1
        if not isinstance(error, DeadObjectError):
            outcome.wrong.append(f"{kind}: {error}")


def _doze(runtime: Runtime, network: int, kind: str, outcome: Outcome) -> None:
    """Execute something that takes long, and should not notice unless it is alone when killed."""
    try:
        if not np.array_equal(run(runtime, network, faulty.DOZE, 16), negative(faulty.DOZE, 16)):
            outcome.wrong.append("another network: wrong result")
    except ArmpyError as error:
        outcome.errors[type(error).__name__] += 1
        if kind != FROM_OUTSIDE:
            outcome.wrong.append(f"another network: {error}")


def held() -> dict[str, int]:
    """What this process has of processes, descriptors and shared memory."""
    maps = Path("/proc/self/maps").read_text()
    return {
        "processes": len(children()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "shared memory": maps.count("memfd:armpy"),
    }


def await_spare() -> None:
    """Wait until the spare worker has everything prepared, if one is being started."""
    for thread in threading.enumerate():
        if thread.name == f"armpy-spare-{faulty.NAME}":
            thread.join()


def children(parent: int | None = None) -> set[int]:
    """The processes that one has started, zombies included; this one if none is given."""
    parent = os.getpid() if parent is None else parent
    pids = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                pids.add(int(entry.name))
    return pids
