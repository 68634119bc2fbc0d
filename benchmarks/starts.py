"""Compares armpy's starts with LiteRT's: time to the first result, first compile, peak memory.

Every figure is of a process of its own on one core and one thread. armpy (on NumbaAcc) and
LiteRT take turns, so that whatever else the machine does falls on both alike, and a ratio is
the median of the pairs' ratios: armpy's figure divided by LiteRT's.

Usage::

    python -m benchmarks.starts MODEL... [--pairs N] [--compile MODEL...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

Figures = dict[str, float]

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

ARMPY = """
import sys
import numpy as np
import armpy
model = armpy.load(sys.argv[1], backends=["NumbaAcc", "CpuRef"], num_threads=1)
inputs = {
    spec.name: np.zeros([size or 1 for size in spec.shape], spec.data_type.dtype)
    for spec in model.inputs
}
outputs = model.run(inputs)
"""

LITERT = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
model = Interpreter(sys.argv[1], num_threads=1)
model.allocate_tensors()
for details in model.get_input_details():
    model.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
model.invoke()
outputs = [model.get_tensor(details["index"]) for details in model.get_output_details()]
"""

TOLD = """
import time
print("first result", time.process_time(), flush=True)
"""


def start(code: str, path: Path, variables: Mapping[str, str] | None = None) -> Figures:
    """Run a process to its first result.

    Returns
    -------
    dict of str to float
        Milliseconds from its start by the clock (`wall_ms`) and of the processor (`cpu_ms`),
        and the most memory that it had (`peak_mb`).
    """
    environment = {**os.environ, **ONE_THREAD, **(variables or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a start must not compile armpy's source
    core = min(os.sched_getaffinity(0))
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code + TOLD, str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - there are no threads
    )
    assert process.stdout is not None  # it was asked for
    line = process.stdout.readline()
    wall_s = time.perf_counter() - begin
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode or not line.startswith("first result"):
        raise SystemExit(f"{path}: a process ended with code {process.returncode}")
    cpu_s = float(line.split()[-1])
    return {"wall_ms": 1e3 * wall_s, "cpu_ms": 1e3 * cpu_s, "peak_mb": usage.ru_maxrss / 1024}


def compare(path: Path, pairs: int) -> Figures:
    """Both engines' starts with warm caches, in turns."""
    for code in (ARMPY, LITERT):
        start(code, path)
    rounds: list[tuple[Figures, Figures]] = []
    for number in range(pairs):
        if number % 2:
            theirs = start(LITERT, path)
            ours = start(ARMPY, path)
        else:
            ours = start(ARMPY, path)
            theirs = start(LITERT, path)
        rounds.append((ours, theirs))
    figures = {}
    for name in rounds[0][0]:
        figures[f"armpy {name}"] = statistics.median(ours[name] for ours, _ in rounds)
        figures[f"LiteRT {name}"] = statistics.median(theirs[name] for _, theirs in rounds)
        ratios = [ours[name] / theirs[name] for ours, theirs in rounds]
        figures[f"ratio {name}"] = statistics.median(ratios)
    return figures


def first_compile(path: Path, rounds: int = 3) -> Figures:
    """A start of armpy with an empty cache: every kernel is compiled."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found.append(start(ARMPY, path, {"ARMPY_CACHE_DIR": folder}))
    return {f"first {name}": statistics.median(f[name] for f in found) for name in found[0]}


def print_table(results: Mapping[str, Figures]) -> None:
    """Print figures as rows of a Markdown table."""
    for group in ("ratio", "first"):
        rows = {n: f for n, f in results.items() if any(key.startswith(group) for key in f)}
        if not rows:
            continue
        columns = list(next(iter(rows.values())))
        print("| model | " + " | ".join(columns) + " |")
        print("|---" * (1 + len(columns)) + "|")
        for name, figures in rows.items():
            print(f"| {name} | " + " | ".join(f"{figures[c]:.4g}" for c in columns) + " |")
        print()


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--compile", nargs="*", type=Path, default=[], metavar="MODEL")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {path.stem: compare(path.resolve(), arguments.pairs) for path in arguments.models}
    for path in arguments.compile:
        results[f"{path.stem}, first compile"] = first_compile(path.resolve())
    print_table(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
