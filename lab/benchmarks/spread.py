"""Measures the throughput of executions that are spread over two backends.

Four threads call a model as fast as they can: on each backend alone, with one thread and one core,
and spread over both (``spread="calls"``), with two cores. The ratio is the spread throughput by the
sum of both. All three take turns, so that whatever else the machine does meets all alike.

Beside other programs the ratio says little: Linux gives a busy session the same share of the
processors whether it has one busy thread or two (``kernel.sched_autogroup_enabled``). The figures
``..._cores`` are the processors that each had on average; ``ratio_per_core`` compares the
throughputs by these, so that 1 is an execution that costs as much spread as alone.

With ``--isolated``, each backend has a process of its own, all of whose threads are kept to one
core, and at the end the first backend's process is killed while the threads call: how many calls
were answered as before, otherwise, or with an error is counted.

Usage::

    python -m lab.benchmarks.spread MODEL.tflite [...] [--backends A,B] [--isolated] [--rounds N]
        [--seconds S] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import armpy
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from lab.benchmarks.common import description, write_json
from lab.benchmarks.peers import random_inputs

CALLERS = 4


def loaded(path: Path, cores: dict[str, int], *, is_isolated: bool) -> armpy.Model:
    """The model on one thread for each backend; several backends share its executions."""
    options = RuntimeOptions(
        backends=list(cores),
        num_threads=1,
        spread="calls" if len(cores) > 1 else None,
        isolation="process" if is_isolated else None,
    )
    model = armpy.load(path, runtime=Runtime(options))
    model(*random_inputs(model))  # engines have started their threads after that
    for name, status in model.runtime.isolation.items():
        for thread in os.listdir(f"/proc/{status.pid}/task"):
            os.sched_setaffinity(int(thread), {cores[name]})
    return model


def throughput(model: armpy.Model, cores: set[int], seconds: float) -> tuple[float, float]:
    """Executions per second of several threads that call at once, and busy processors."""
    arrays = random_inputs(model)
    os.sched_setaffinity(0, cores)

    def call(_: int) -> int:
        os.sched_setaffinity(0, cores)
        ends_s, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < ends_s:
            model(*arrays)
            count += 1
        return count

    with ThreadPoolExecutor(CALLERS) as pool:
        began_s, began_cpu_s = time.perf_counter(), processor_time(model)
        total = sum(pool.map(call, range(CALLERS)))
        wall_s = time.perf_counter() - began_s
        return total / wall_s, (processor_time(model) - began_cpu_s) / wall_s


def processor_time(model: armpy.Model) -> float:
    """Processor seconds of this process, and of those of isolated backends, so far."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    seconds = time.process_time()
    for status in model.runtime.isolation.values():
        fields = Path(f"/proc/{status.pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / ticks_per_s
    return seconds


def measure(
    path: Path, backends: list[str], rounds: int, seconds: float, *, is_isolated: bool
) -> dict[str, float]:
    """Medians of throughputs and ratios; then what a kill does to calls."""
    cores = dict(zip(backends, sorted(os.sched_getaffinity(0)), strict=False))
    alone = {
        name: loaded(path, {name: core}, is_isolated=is_isolated) for name, core in cores.items()
    }
    both = loaded(path, cores, is_isolated=is_isolated)
    rows: list[dict[str, float]] = []
    for number in range(rounds + 1):
        row: dict[str, float] = {}
        for name, model in {**alone, "spread": both}.items():
            used = {cores[name]} if name in cores else {*cores.values()}
            row[f"{name}_per_s"], row[f"{name}_cores"] = throughput(model, used, seconds)
        apart_per_s = sum(row[f"{name}_per_s"] for name in cores)
        apart_cores = sum(row[f"{name}_cores"] for name in cores)
        row["ratio"] = row["spread_per_s"] / apart_per_s
        row["ratio_per_core"] = row["ratio"] * apart_cores / row["spread_cores"]
        if number:  # the first round warms up
            rows.append(row)
    figures = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    return figures | (calls_around_kill(both, backends[0], seconds) if is_isolated else {})


def calls_around_kill(model: armpy.Model, victim: str, seconds: float) -> dict[str, float]:
    """Kill a backend's process while threads call, and count the calls by what came of them."""
    arrays = random_inputs(model)
    expected = model(*arrays)
    outcomes: Counter[str] = Counter(right_calls=0, wrong_calls=0, failed_calls=0)
    lock, killed = threading.Lock(), threading.Event()

    def outcome() -> str:
        try:
            answer = model(*arrays)
        except ArmpyError:
            return "failed_calls"
        # Backends differ in the last bits.
        is_right = np.allclose(np.asarray(answer), np.asarray(expected), rtol=1e-3, atol=1e-4)
        return "right_calls" if is_right else "wrong_calls"

    def call(_: int) -> None:
        ends_s = time.perf_counter() + seconds
        while time.perf_counter() < ends_s or not killed.is_set():
            name = outcome()
            with lock:
                outcomes[name] += 1

    def kill() -> None:
        pid = model.runtime.isolation[victim].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        killed.set()

    timer = threading.Timer(seconds / 2, kill)
    timer.start()
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(call, range(CALLERS)))
    timer.join()
    return dict(outcomes)


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--backends", default="NumbaAcc,LiteRt", metavar="A,B")
    parser.add_argument("--isolated", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    for path in arguments.models:
        backends = arguments.backends.split(",")
        figures = measure(
            path,
            backends,
            arguments.rounds,
            arguments.seconds,
            is_isolated=arguments.isolated,
        )
        results[path.name] = figures
        print(f"{path.name:40}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
