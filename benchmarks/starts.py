"""Compares armpy's starts with LiteRT's: time to the first result, first compile, peak memory.

Every figure is of a process of its own on one core and one thread. The ways to start and LiteRT
take turns, so that whatever else the machine does falls on all alike, and a ratio is the median of
the rounds' ratios: armpy's figure divided by LiteRT's in the same round. The ways of armpy (on
NumbaAcc, with warm caches) are

- ``model``: `armpy.load` of the model's file;
- ``prepared``: `armpy.load` of a file that ``armpy compile`` made of it for this machine;
- ``run``: ``armpy run`` on that file, to its end.

Usage::

    python -m benchmarks.starts MODEL... [--pairs N] [--compile MODEL...] [--cold MODEL...]
        [--json FILE]

``--cold`` compares first starts with LiteRT's: armpy has an empty cache, once without and once with
the kernel packs that ``ARMPY_KERNELS`` names or that are installed, and says how many kernels it
has compiled all the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import description, thread_variables, write_json

Figures = dict[str, float]

_PEER = "LiteRT"

_SETTLED_S = 3
"""How old a file has to be before armpy remembers that it has checked it."""

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

PREPARED = ARMPY.replace('backends=["NumbaAcc", "CpuRef"], ', "")
"""Of a prepared file: it says itself where its layers run."""

RUN = """
import contextlib, io, sys
from armpy.cli.__main__ import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(["run", sys.argv[1], "--num-threads", "1"])
if code:
    raise SystemExit(code)
"""

COMPILE = """
import sys
import armpy
armpy.load(sys.argv[1], backends=["NumbaAcc", "CpuRef"], num_threads=1).save(sys.argv[2])
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
    environment = {**os.environ, **thread_variables(), **(variables or {})}
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
    """All ways to start with warm caches, in turns with LiteRT."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder).resolve() / "model.armpy"
        subprocess.run([sys.executable, "-c", COMPILE, str(path), str(prepared)], check=True)
        time.sleep(_SETTLED_S)
        ways = {
            "model": (ARMPY, path),
            "prepared": (PREPARED, prepared),
            "run": (RUN, prepared),
            _PEER: (LITERT, path),
        }
        for way in ways.values():
            start(*way)
        rounds: list[dict[str, Figures]] = []
        for number in range(pairs):
            order = list(ways) if number % 2 else list(reversed(ways))
            rounds.append({name: start(*ways[name]) for name in order})
    figures = {}
    for name in ways:
        for what in ("wall_ms", "cpu_ms", "peak_mb"):
            figures[f"{name} {what}"] = statistics.median(r[name][what] for r in rounds)
            if name != _PEER:
                ratios = [r[name][what] / r[_PEER][what] for r in rounds]
                figures[f"ratio {name} {what}"] = statistics.median(ratios)
    return figures


def first_compile(path: Path, rounds: int = 3) -> Figures:
    """A start of armpy with an empty cache: every kernel is compiled."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found.append(start(ARMPY, path, {"ARMPY_CACHE_DIR": folder}))
    return {f"first {name}": statistics.median(f[name] for f in found) for name in found[0]}


COLD = (
    ARMPY
    + """
uses = [use for use in model.placement.cache_uses if use.what.endswith("kernels")]
words = " ".join(use.reason for use in uses).replace(",", "").split()
print("compiled", sum(int(words[n - 1]) for n, word in enumerate(words) if word == "compiled"),
      file=sys.stderr)
"""
)
"""A start that says how many kernels it has compiled."""


def cold(path: Path, pairs: int) -> Figures:
    """Starts with an empty cache, without and with kernel packs, in turns with LiteRT."""
    rounds: list[dict[str, Figures]] = []
    for _ in range(pairs):
        found = {_PEER: start(LITERT, path)}
        for name, variables in (("compiled", {"ARMPY_KERNELS": "off"}), ("packs", {})):
            with tempfile.TemporaryDirectory() as folder:
                found[name] = start(ARMPY, path, {"ARMPY_CACHE_DIR": folder, **variables})
        rounds.append(found)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **thread_variables(), "ARMPY_CACHE_DIR": folder}
        said = subprocess.run(
            [sys.executable, "-c", COLD, str(path)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        compiled = int(said.rpartition("compiled ")[2] or 0)
    figures: Figures = {}
    for name in ("compiled", "packs"):
        for what in ("wall_ms", "cpu_ms"):
            figures[f"cold {name} {what}"] = statistics.median(r[name][what] for r in rounds)
        ratios = [r[name]["cpu_ms"] / r[_PEER]["cpu_ms"] for r in rounds]
        figures[f"cold {name} ratio"] = statistics.median(ratios)
    return {**figures, "cold kernels compiled beside packs": compiled}


def print_table(results: Mapping[str, Figures]) -> None:
    """Print figures as rows of a Markdown table."""
    for group in ("ratio", "first", "cold"):
        rows = {n: f for n, f in results.items() if any(key.startswith(group) for key in f)}
        if not rows:
            continue
        every = list(dict.fromkeys(column for figures in rows.values() for column in figures))
        columns = [column for column in every if column.startswith(group)]
        print("| model | " + " | ".join(columns) + " |")
        print("|---" * (1 + len(columns)) + "|")
        for name, figures in rows.items():
            print(f"| {name} | " + " | ".join(f"{figures[c]:.4g}" for c in columns) + " |")
        print()


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--compile", nargs="*", type=Path, default=[], metavar="MODEL")
    parser.add_argument("--cold", nargs="*", type=Path, default=[], metavar="MODEL")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {path.stem: compare(path.resolve(), arguments.pairs) for path in arguments.models}
    for path in arguments.compile:
        results[f"{path.stem}, first compile"] = first_compile(path.resolve())
    for path in arguments.cold:
        results[f"{path.stem}, cold"] = cold(path.resolve(), min(arguments.pairs, 3))
    print_table(results)
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
