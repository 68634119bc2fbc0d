"""Measures what a machine needs for armpy: installed bytes, memory, disk, time of starts.

Usage::

    python -m lab.benchmarks.sizing [MODEL...] [--installed NAME[EXTRA]...]
        [--rounds N] [--json FILE]

``--installed`` adds up the files of a distribution and of all that it needs, in this environment,
as their wheels list them: without byte code, and without what the extras of others would add.

Every figure of a MODEL is of processes of their own with one thread and a cache of their own, which
is empty for the first start; open dimensions are 1. Memory is resident memory: all of it, the most
of it, and the private part, which processes cannot share. Times are of the processor, so that other
work on the machine disturbs them little; with several rounds, the least and the most are given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lab.benchmarks.common import description, output_of, write_json

Figures = dict[str, float]

_MB = 1e6

_SETTLED_S = 3
"""How old a file has to be before armpy remembers that it has checked it."""

START = r"""
import json, re, resource, sys, time
marks = {}
def mark(name):
    marks[f"{name} s"] = time.process_time()
    with open("/proc/self/smaps_rollup") as file:
        kilobytes = dict(re.findall(r"^(\w+): +(\d+) kB", file.read(), re.MULTILINE))
    marks[f"{name} all"] = int(kilobytes["Rss"]) * 1024
    marks[f"{name} private"] = int(kilobytes["Private_Dirty"]) * 1024
mark("python")
import armpy
mark("import")
import numpy as np
model = armpy.load(sys.argv[1], num_threads=1)
shapes = {s.name: [size or 1 for size in s.shape] for s in model.inputs}
arrays = {s.name: np.zeros(shapes[s.name], s.data_type.dtype) for s in model.inputs}
for _ in range(2):
    model.run(arrays)
mark("result")
marks["result most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
if len(sys.argv) > 2:
    model.save(sys.argv[2])
print(json.dumps(marks))
"""
"""A process that loads a model, calls it twice, and may save it."""


def start(path: Path, cache: Path, *arguments: str) -> Figures:
    """Run a process with a cache of its own to a model's second result."""
    code = ["-c", START, str(path), *arguments]
    # Whole models are cached as by an installed armpy, in a checkout too.
    variables = {"ARMPY_CACHE_DIR": str(cache), "ARMPY_MODEL_CACHE": "on"}
    line = output_of(code, variables=variables, num_cores=1)
    figures: Figures = json.loads(line)
    return figures


def figures_of(path: Path) -> Figures:
    """What a model's file, its starts, and its memory take."""
    with tempfile.TemporaryDirectory() as folder:
        cache, compiled = Path(folder, "cache"), Path(folder, "model.armpy").resolve()
        first = start(path, cache, str(compiled))
        time.sleep(_SETTLED_S)
        start(path, cache)  # what the first start left open is done now
        later = start(path, cache)
        light = start(compiled, cache)
        return {
            "file": path.stat().st_size,
            "cache": sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()),
            "compiled": compiled.stat().st_size,
            "first s": first["result s"],
            "first most": first["result most"],
            "later s": later["result s"],
            "later most": later["result most"],
            "later all": later["result all"],
            "later private": later["result private"],
            "compiled s": light["result s"],
            "compiled all": light["result all"],
            "compiled private": light["result private"],
            "import s": later["import s"] - later["python s"],
            "import all": later["import all"] - later["python all"],
        }


def installed(requirement: str) -> Iterator[tuple[str, int]]:
    """Name and bytes of each distribution that a requirement takes in, the first its own."""
    waiting, extras_of = [Requirement(requirement)], dict[str, set[str]]()
    while waiting:
        wanted = waiting.pop(0)
        name = canonicalize_name(wanted.name)
        if wanted.extras <= extras_of.get(name, set()) and name in extras_of:
            continue
        try:
            distribution = Distribution.from_name(name)
        except PackageNotFoundError:
            print(f"not installed, and so not counted: {name}", file=sys.stderr)
            continue
        if name not in extras_of:
            yield name, bytes_of(distribution)
        extras_of.setdefault(name, set()).update(wanted.extras)
        needed = map(Requirement, distribution.requires or ())
        waiting += [requirement for requirement in needed if holds(requirement, wanted.extras)]


def holds(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Whether a requirement holds here, with one of some extras or without any."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *extras])


def bytes_of(distribution: Distribution) -> int:
    """The files of a distribution, without byte code."""
    files = [file.locate() for file in distribution.files or () if file.suffix != ".pyc"]
    return sum(os.stat(file).st_size for file in files if os.path.exists(file))


def print_table(results: Mapping[str, Sequence[Figures]]) -> None:
    """Print figures as a Markdown table: bytes in MB, times in seconds."""
    columns = [*next(iter(results.values()))[0]]
    print("| model | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for name, rounds in results.items():
        cells = [spread([figures[column] for figures in rounds], column) for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")


def spread(values: Sequence[float], column: str) -> str:
    """The least and the most of a figure; one number if they print alike."""
    unit = 1.0 if column.endswith(" s") else _MB
    texts = [
        f"{value / unit:.2g}" if value < 100 * unit else f"{value / unit:.0f}"
        for value in (min(values), max(values))
    ]
    return " to ".join(dict.fromkeys(texts))


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--installed", nargs="*", default=[], metavar="NAME[EXTRA]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for requirement in arguments.installed:
        parts = dict(installed(requirement))
        largest = sorted(parts, key=parts.__getitem__, reverse=True)
        listed = ", ".join(f"{name} {parts[name] / _MB:.1f}" for name in largest)
        print(f"{requirement}: {sum(parts.values()) / _MB:.0f} MB ({listed})")
    results = {
        path.stem: [figures_of(path.resolve()) for _ in range(arguments.rounds)]
        for path in arguments.models
    }
    if results:
        print_table(results)
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
