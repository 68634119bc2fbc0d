"""Measures CpuRef: time per run, load time, peak memory, import time.

Every figure comes from processes of their own, on one thread, each the median over
several rounds. Where LiteRT is installed (extra ``bench``) its time per run is taken in
the same round, interleaved, and the ratio is given.

Usage::

    python -m benchmarks.cpu_ref MODEL.tflite [...] [--json FILE] [--rounds N]
    python -m benchmarks.cpu_ref

What a call costs beyond the work of its layers is measured by `benchmarks.overhead`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from pathlib import Path

from benchmarks.common import description, output_of, write_json

_RUN = """
import json, resource, sys, time
import numpy as np
start = time.perf_counter()
import armpy
imported = time.perf_counter()
path, shape = sys.argv[1], json.loads(sys.argv[2])
import armpy_reference
armpy.load(path, backends=["CpuRef"]).close()
before = time.perf_counter()
model = armpy.load(path, backends=["CpuRef"])
loaded = time.perf_counter()
generator = np.random.default_rng(0)
arrays = []
for spec in model.inputs:
    dims = [shape[i] if shape else (d or 1) for i, d in enumerate(spec.shape)]
    low, high = spec.data_type.integer_range if not spec.data_type.is_float else (0, 1)
    arrays.append(generator.uniform(low, high, dims).astype(spec.data_type.dtype))
model(*arrays)
times = []
deadline = time.perf_counter() + 1.0
while len(times) < 3 or time.perf_counter() < deadline:
    begin = time.perf_counter()
    model(*arrays)
    times.append(time.perf_counter() - begin)
print(json.dumps({
    "import_ms": 1e3 * (imported - start),
    "load_ms": 1e3 * (loaded - before),
    "run_ms": 1e3 * sorted(times)[len(times) // 2],
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "arena_mb": model.placement.peak_bytes / 2**20,
}))
"""

_RUN_LITERT = """
import json, sys, time
import numpy as np
from ai_edge_litert.interpreter import Interpreter
path, shape = sys.argv[1], json.loads(sys.argv[2])
interpreter = Interpreter(model_path=path, num_threads=1)
if shape:
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
interpreter.allocate_tensors()
for details in interpreter.get_input_details():
    zeros = np.zeros(details["shape"], details["dtype"])
    interpreter.set_tensor(details["index"], zeros)
interpreter.invoke()
times = []
deadline = time.perf_counter() + 0.5
while len(times) < 3 or time.perf_counter() < deadline:
    begin = time.perf_counter()
    interpreter.invoke()
    times.append(time.perf_counter() - begin)
print(json.dumps({"run_ms": 1e3 * sorted(times)[len(times) // 2]}))
"""

_IMPORT = """
import json, sys, time
import numpy
start = time.perf_counter()
import armpy
print(json.dumps({"import_ms": 1e3 * (time.perf_counter() - start)}))
"""


def figures_of(code: str, *arguments: str) -> dict[str, float]:
    """Run a measurement in a process of its own on one core and thread."""
    result: dict[str, float] = json.loads(output_of(["-c", code, *arguments], num_cores=1))
    return result


def median_of(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Median of each figure."""
    return {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}


def measure_model(
    path: Path, shape: list[int], rounds: int, *, with_litert: bool
) -> dict[str, float]:
    """All figures of one model; LiteRT's beside them where it is installed."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(figures_of(_RUN, str(path), json.dumps(shape)))
        if with_litert:
            theirs.append(figures_of(_RUN_LITERT, str(path), json.dumps(shape)))
    figures = median_of(ours)
    if theirs:
        figures["litert_ms"] = median_of(theirs)["run_ms"]
        figures["times_litert"] = figures["run_ms"] / figures["litert_ms"]
    return figures


def has_litert() -> bool:
    """Whether LiteRT is installed."""
    return importlib.util.find_spec("ai_edge_litert") is not None


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--shape", default="[]", help="input shape as JSON, for open dimensions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    if not arguments.models:
        results["import beyond NumPy"] = median_of([figures_of(_IMPORT) for _ in range(9)])
    litert = bool(arguments.models) and has_litert()
    for path in arguments.models:
        shape = json.loads(arguments.shape)
        results[path.name] = measure_model(path, shape, arguments.rounds, with_litert=litert)
    for name, figures in results.items():
        print(f"{name:48}", "  ".join(f"{key} {value:.3g}" for key, value in figures.items()))
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
