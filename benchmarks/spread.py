"""Measures the throughput of executions that are spread over two backends.

Four threads call a model as fast as they can: on each backend alone, with one thread and one core,
and spread over both (``spread="calls"``), with two cores. The ratio is the spread throughput by the
sum of both. All three take turns, so that whatever else the machine does meets all alike.

Usage::

    python -m benchmarks.spread MODEL.tflite [...] [--backends A,B] [--rounds N] [--seconds S]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import armpy
from armpy.execution import Runtime, RuntimeOptions
from benchmarks.common import description, write_json
from benchmarks.peers import random_inputs

CALLERS = 4


def loaded(path: Path, backends: list[str]) -> armpy.Model:
    """The model on one thread for each backend; several backends share its executions."""
    options = RuntimeOptions(
        backends=backends, num_threads=1, spread="calls" if len(backends) > 1 else None
    )
    return armpy.load(path, runtime=Runtime(options))


def throughput(model: armpy.Model, cores: set[int], seconds: float) -> float:
    """Executions per second of several threads that call at the same time."""
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
        began_s = time.perf_counter()
        total = sum(pool.map(call, range(CALLERS)))
        return total / (time.perf_counter() - began_s)


def measure(path: Path, backends: list[str], rounds: int, seconds: float) -> dict[str, float]:
    """Medians of the three throughputs, and of the ratio."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    alone = {name: loaded(path, [name]) for name in backends}
    both = loaded(path, backends)
    rows: list[list[float]] = []
    for number in range(rounds + 1):
        row = [
            throughput(model, {core}, seconds)
            for model, core in zip(alone.values(), cores, strict=True)
        ]
        row.append(throughput(both, {*cores}, seconds))
        if number:  # the first round warms up
            rows.append(row)
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    ratio = statistics.median(together / (first + second) for first, second, together in rows)
    names = [*(f"{name}_per_s" for name in backends), "spread_per_s", "ratio"]
    return dict(zip(names, [*medians, ratio], strict=True))


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--backends", default="NumbaAcc,LiteRt", metavar="A,B")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    for path in arguments.models:
        backends = arguments.backends.split(",")
        results[path.name] = figures = measure(path, backends, arguments.rounds, arguments.seconds)
        print(f"{path.name:40}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
