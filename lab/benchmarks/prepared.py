"""Measures what processes that run one compiled model share.

Of ten processes that run one file, how much memory its mapping takes of all of them together: the
proportional set size, which counts a page that n processes share as 1/n of it in each. 1.0 times
the file's bytes that are used means that its weights are in memory once.

Usage::

    python -m lab.benchmarks.prepared MODEL... [--processes 10] [--json FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.benchmarks.common import description, write_json

Figures = dict[str, float]

_MIB = 1 << 20

SHARED = """
import sys
import numpy as np
import armpy
model = armpy.load(sys.argv[1])
shapes = [[size or 1 for size in spec.shape] for spec in model.inputs]
model.run({
    spec.name: np.zeros(shape, spec.data_type.dtype)
    for spec, shape in zip(model.inputs, shapes)
})
print("ready", flush=True)
sys.stdin.readline()
"""


def prepare(model: Path, path: Path) -> None:
    """Compile a model for this machine, in a process of its own."""
    code = "import sys, armpy; armpy.load(sys.argv[1]).save(sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, str(model), str(path)], check=True)


def shared_memory(path: Path, num_processes: int) -> Figures:
    """Memory of a file's mapping in one process, and in many that run it at the same time."""
    alone = _proportional_bytes(path, 1)
    together = _proportional_bytes(path, num_processes)
    return {
        "file MiB": path.stat().st_size / _MIB,
        "mapped in 1 process MiB": alone / _MIB,
        f"mapped in {num_processes} processes MiB": together / _MIB,
        "ratio": together / alone if alone else float("nan"),
    }


def _proportional_bytes(path: Path, num_processes: int) -> int:
    """Proportional set size of a file's mappings, of all processes that run it together."""
    command = [sys.executable, "-c", SHARED, str(path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(num_processes)
    ]
    try:
        for process in processes:
            assert process.stdout is not None  # it was asked for
            if process.stdout.readline().strip() != "ready":
                raise SystemExit(f"{path}: a process ended")
        return sum(_mapped_bytes(process.pid, path) for process in processes)
    finally:
        for process in processes:
            process.communicate("\n")


def _mapped_bytes(pid: int, path: Path) -> int:
    """Proportional set size of a file's mappings in a process, by Linux's account."""
    total, is_of_file = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text("utf-8").splitlines():
        name, *rest = line.split(None, 5)
        if not name.endswith(":"):
            is_of_file = bool(rest) and rest[-1] == str(path)
        elif is_of_file and name == "Pss:":
            total += int(rest[0]) << 10
    return total


def print_table(results: Mapping[str, Figures]) -> None:
    """Print figures as rows of a Markdown table."""
    columns = list(dict.fromkeys(name for figures in results.values() for name in figures))
    print("| model | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for model, figures in results.items():
        cells = [f"{figures[name]:.4g}" if name in figures else "" for name in columns]
        print(f"| {model} | " + " | ".join(cells) + " |")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            path = Path(folder).resolve() / f"{model.stem}.armpy"
            prepare(model.resolve(), path)
            results[model.stem] = shared_memory(path, arguments.processes)
    print_table(results)
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
