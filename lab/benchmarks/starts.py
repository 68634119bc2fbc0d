"""Compares armpy's starts with other engines': time to the first result, its parts, peak memory.

Every figure is of a process of its own on one core and one thread. The ways to start and the peer
(LiteRT, ONNX Runtime for .onnx files) take turns, so that whatever else the machine does falls on
all alike, and a ratio is the median of the rounds' ratios: armpy's figure divided by the peer's in
the same round. The ways of armpy (on NumbaAcc, with warm caches) are

- ``model``: `armpy.load` of the model's file;
- ``prepared``: `armpy.load` of a file that ``armpy compile`` made of it for this machine; not where
  dimensions are open;
- ``run``: ``armpy run`` on that file, to its end.

Parts of a process are ``load``, ``first call``, ``second call`` and, with ``--new``, a call with
shapes that no process before has used. Open dimensions are 1, unless ``--shapes`` says otherwise.

Usage::

    python -m lab.benchmarks.starts MODEL... [--pairs N] [--cold MODEL...] [--json FILE]
        [--shapes NAME=N,N... --new NAME=N,N... --values NAME=NUMBER...]

``--cold`` compares first starts with the peer's: armpy has an empty cache, once without and once
with the kernel packs that ``ARMPY_KERNELS`` names and those that come with NumbaAcc, and says how
many kernels it has compiled all the same.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.benchmarks.common import description, named_numbers, thread_variables, write_json

Figures = dict[str, float]
Asked = Mapping[str, Mapping[str, Sequence[int]]]

_PEER = "peer"

_SETTLED_S = 3
"""How old a file has to be before armpy remembers that it has checked it."""

_BEGIN = """
import json, sys, time
import numpy as np
asked, marks = json.loads(sys.argv[2]), {}
def arrays(specs, which):
    return {
        name: np.full(asked[which].get(name, shape), asked["values"].get(name, [0])[0], dtype)
        for name, shape, dtype in specs
    }
def part(name, work):
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    made = work()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    marks[f"{name} cpu_ms"], marks[f"{name} wall_ms"] = 1e3 * cpu_s, 1e3 * wall_s
    return made
"""

_CALLS = """
part("first call", lambda: call(arrays(specs, "shapes")))
print("first result", time.process_time(), flush=True)
part("second call", lambda: call(arrays(specs, "shapes")))
if asked["new"]:
    part("new shape", lambda: call(arrays(specs, "new")))
print(json.dumps(marks), flush=True)
"""

_ARMPY = """
def loaded():
    import armpy
    return armpy.load(sys.argv[1], BACKENDSnum_threads=1)
model = part("load", loaded)
specs = [(s.name, [n or 1 for n in s.shape], s.data_type.dtype) for s in model.inputs]
call = model.run
"""

ARMPY = _BEGIN + _ARMPY.replace("BACKENDS", 'backends=["NumbaAcc", "CpuRef"], ') + _CALLS

PREPARED = _BEGIN + _ARMPY.replace("BACKENDS", "") + _CALLS
"""Of a compiled model: it says itself where its layers run."""

LITERT = (
    _BEGIN
    + """
def loaded():
    from ai_edge_litert.interpreter import Interpreter
    return Interpreter(sys.argv[1], num_threads=1)
model = part("load", loaded)
specs = [(d["name"], d["shape"], d["dtype"]) for d in model.get_input_details()]
def call(inputs):
    model.allocate_tensors()
    for details in model.get_input_details():
        model.set_tensor(details["index"], inputs[details["name"]])
    model.invoke()
    return [model.get_tensor(details["index"]) for details in model.get_output_details()]
"""
    + _CALLS
)

ONNX_RUNTIME = (
    _BEGIN
    + """
def loaded():
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
model = part("load", loaded)
names = {"float": "f4", "double": "f8", "float16": "f2"}
specs = [
    (
        given.name,
        [n if isinstance(n, int) else 1 for n in given.shape],
        names.get(given.type[7:-1], given.type[7:-1]),
    )
    for given in model.get_inputs()
]
call = lambda inputs: model.run(None, inputs)
"""
    + _CALLS
)

RUN = """
import contextlib, io, sys, time
from armpy.cli.__main__ import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(["run", sys.argv[1], "--num-threads", "1"])
if code:
    raise SystemExit(code)
print("first result", time.process_time(), flush=True)
print("{}", flush=True)
"""

COMPILE = """
import sys
import armpy
armpy.load(sys.argv[1], backends=["NumbaAcc", "CpuRef"], num_threads=1).save(sys.argv[2])
"""

PLAIN: Asked = {"shapes": {}, "new": {}, "values": {}}
"""What a model is called with: open dimensions are 1, and all numbers are 0."""


class StartError(Exception):
    """An engine did not come to its first result."""


def start(
    code: str,
    path: Path,
    asked: Asked = PLAIN,
    variables: Mapping[str, str] | None = None,
) -> Figures:
    """Run a process to its first result, and somewhat further.

    Returns
    -------
    dict of str to float
        Milliseconds from its start to the first result by the clock (`wall_ms`) and of the
        processor (`cpu_ms`), those of its parts, and the most memory that it had (`peak_mb`).
    """
    environment = {**os.environ, **thread_variables(), **(variables or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a start must not compile armpy's source
    core = min(os.sched_getaffinity(0))
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), json.dumps(asked)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - there are no threads
    )
    assert process.stdout is not None  # it was asked for
    line = process.stdout.readline()
    wall_s = time.perf_counter() - begin
    parts = process.stdout.readline()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode or not line.startswith("first result"):
        raise StartError(f"{path}: a process ended with code {process.returncode}")
    cpu_s = float(line.split()[-1])
    total = {"wall_ms": 1e3 * wall_s, "cpu_ms": 1e3 * cpu_s, "peak_mb": usage.ru_maxrss / 1024}
    return {**total, **json.loads(parts)}


def compare(path: Path, pairs: int, asked: Asked = PLAIN) -> Figures:
    """All ways to start with warm caches, in turns with the peer."""
    is_onnx = path.suffix == ".onnx"
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, tuple[str, Path]] = {"model": (ARMPY, path)}
        if not is_onnx:
            prepared = Path(folder).resolve() / "model.armpy"
            subprocess.run([sys.executable, "-c", COMPILE, str(path), str(prepared)], check=True)
            ways |= {"prepared": (PREPARED, prepared), "run": (RUN, prepared)}
        ways[_PEER] = (ONNX_RUNTIME if is_onnx else LITERT, path)
        for way in ways.values():
            start(*way, {**asked, "new": {}})  # what is new is to stay so
        time.sleep(_SETTLED_S)
        for way in ways.values():
            start(*way, {**asked, "new": {}})
        rounds: list[dict[str, Figures]] = []
        for number in range(pairs):
            order = list(ways) if number % 2 else list(reversed(ways))
            this = {**asked, "new": _moved(asked, number)}
            rounds.append({name: start(*ways[name], this) for name in order})
    figures = {}
    for name in ways:
        for figure in rounds[0][name]:
            figures[f"{name} {figure}"] = statistics.median(r[name][figure] for r in rounds)
            if name != _PEER:
                ratios = [r[name][figure] / r[_PEER][figure] for r in rounds]
                figures[f"ratio {name} {figure}"] = statistics.median(ratios)
    return figures


def _moved(asked: Asked, number: int) -> Mapping[str, Sequence[int]]:
    """Shapes that no round before has used: sizes that are to be new are others in each."""
    return {
        name: [
            size + number * (size != usual)
            for size, usual in zip(new, asked["shapes"].get(name, [1] * len(new)), strict=True)
        ]
        for name, new in asked["new"].items()
    }


COLD = ARMPY.replace(
    "print(json",
    """
uses = [] if model.placement is None else model.placement.cache_uses
words = " ".join(use.reason for use in uses).replace(",", "").split()
marks["compiled"] = sum(int(words[n - 1]) for n, word in enumerate(words) if word == "compiled")
print(json""",
)
"""A start that says how many kernels it has compiled."""


def cold(path: Path, pairs: int, asked: Asked = PLAIN) -> Figures:
    """Starts with an empty cache, without and with kernel packs, in turns with the peer."""
    peer = ONNX_RUNTIME if path.suffix == ".onnx" else LITERT
    ways = {"compiled": {"ARMPY_KERNELS": "off"}, "packs": {}}
    rounds: list[dict[str, Figures]] = []
    for _ in range(pairs):
        starts = {_PEER: start(peer, path, asked)}
        for name, variables in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                settings = {"ARMPY_CACHE_DIR": folder, **variables}
                starts[name] = start(COLD, path, asked, variables=settings)
        rounds.append(starts)
    figures: Figures = {}
    for name in ways:
        for figure in ("wall_ms", "cpu_ms", "peak_mb", "compiled"):
            figures[f"cold {name} {figure}"] = statistics.median(r[name][figure] for r in rounds)
        for figure in ("wall_ms", "cpu_ms", "peak_mb"):
            ratios = [r[name][figure] / r[_PEER][figure] for r in rounds]
            figures[f"cold {name} ratio {figure}"] = statistics.median(ratios)
    return figures


def print_table(results: Mapping[str, Figures]) -> None:
    """Print figures as rows of a Markdown table."""
    for group in ("model", "peer", "ratio", "cold"):
        rows = {n: f for n, f in results.items() if any(key.startswith(group) for key in f)}
        if not rows:
            continue
        every = list(dict.fromkeys(column for figures in rows.values() for column in figures))
        columns = [column for column in every if column.startswith(group)]
        print("| model | " + " | ".join(columns) + " |")
        print("|---" * (1 + len(columns)) + "|")
        for name, figures in rows.items():
            print(
                f"| {name} | "
                + " | ".join(f"{figures[c]:.4g}" if c in figures else "" for c in columns)
                + " |"
            )
        print()


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--cold", nargs="*", type=Path, default=[], metavar="MODEL")
    parser.add_argument("--json", type=Path)
    for name in PLAIN:
        parser.add_argument(
            f"--{name}", nargs="*", type=named_numbers, default=[], metavar="NAME=N,N"
        )
    arguments = parser.parse_args()
    asked = {name: dict(getattr(arguments, name)) for name in PLAIN}
    results: dict[str, Figures] = {}
    for paths, pairs, measure in (
        (arguments.models, arguments.pairs, compare),
        (arguments.cold, min(arguments.pairs, 3), cold),
    ):
        for path in paths:
            try:
                figures = measure(path.resolve(), pairs, asked)
            except StartError as error:  # an engine that refuses one model has others to start
                print(f"left out: {error}", file=sys.stderr)
                continue
            results[path.stem] = {**results.get(path.stem, {}), **figures}
    print_table(results)
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
