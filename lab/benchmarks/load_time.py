"""Measures how load times grow with the number of layers, by shape of graph and backend.

Every figure is processor time of a process of its own, from a .tflite file's bytes to a model that
can run; kernels are compiled already. The last column is the time of the largest network divided
by that of the smallest, against the ratio of their sizes: 1 is linear.

Usage::

    python -m lab.benchmarks.load_time [--sizes N...] [--shapes NAME...] [--backends ID...]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from armpy_testing.models.long_networks import SHAPES, long_network
from lab.benchmarks.common import description, output_of

LOAD = """
import sys, time
from armpy import load
data = open(sys.argv[1], "rb").read()
backends = [sys.argv[2], "CpuRef"] if sys.argv[2] != "CpuRef" else ["CpuRef"]
begin = time.process_time()
model = load(data, backends=backends, num_threads=1)
print(time.process_time() - begin)
"""


def seconds(path: Path, backend: str) -> float:
    """How long a process takes to load a file."""
    return float(output_of(["-c", LOAD, str(path), backend]))


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--sizes", type=int, nargs="*", default=[5_000, 10_000, 20_000, 50_000])
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--backends", nargs="*", default=["CpuRef", "NumbaAcc"])
    options = parser.parse_args()
    sizes = sorted(options.sizes)
    print("| graph | backend | " + " | ".join(f"{n:,} layers, s" for n in sizes) + " | growth |")
    print("|---" * (3 + len(sizes)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        for shape in options.shapes:
            for backend in options.backends:
                times = []
                for size in (100, *sizes):  # the first one compiles
                    path.write_bytes(long_network(shape, size))
                    times.append(seconds(path, backend))
                growth = times[-1] / times[1] / (sizes[-1] / sizes[0])
                row = " | ".join(f"{t:.2f}" for t in times[1:])
                print(f"| {shape} | {backend} | {row} | {growth:.2f} |", flush=True)


if __name__ == "__main__":
    main()
