"""Compares kernels chosen by measured figures of this machine with those chosen by built-in ones.

Both models are loaded into one process, on one thread, and take turns, so that whatever else the
machine does falls on both alike. A ratio is the median of the rounds' ratios: the time with
measured figures divided by the time with built-in ones.

Usage::

    python -m benchmarks.machine_figures MODEL... [--seconds S] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import armpy
from benchmarks.common import description, keep_to_cores, write_json
from benchmarks.peers import random_inputs

VARIABLE = "ARMPY_NUMBA_MACHINE"
FIGURES = ("measured", "typical")
ROUND_S = 0.05
"""How long each model runs before the other one's turn."""


def load_with(figures: str, path: Path) -> armpy.Model:
    """A model whose kernels are chosen by some figures."""
    os.environ[VARIABLE] = figures
    return armpy.load(path, backends=["NumbaAcc", "CpuRef"], num_threads=1)


def compare(path: Path, seconds: float) -> dict[str, float]:
    """Milliseconds of a call with each kind of figures, and the median of the rounds' ratios."""
    models = {figures: load_with(figures, path) for figures in FIGURES}
    inputs = random_inputs(models["typical"])
    for model in models.values():
        model(*inputs)
    begin_s = time.perf_counter()
    models["typical"](*inputs)
    calls = max(1, round(ROUND_S / (time.perf_counter() - begin_s)))
    times_ms: dict[str, list[float]] = {figures: [] for figures in FIGURES}
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        for figures in FIGURES if len(times_ms["typical"]) % 2 else FIGURES[::-1]:
            begin_s = time.perf_counter()
            for _ in range(calls):
                models[figures](*inputs)
            times_ms[figures].append(1e3 * (time.perf_counter() - begin_s) / calls)
    for model in models.values():
        model.close()
    pairs = zip(times_ms["measured"], times_ms["typical"], strict=True)
    medians = {f"{figures}_ms": statistics.median(times) for figures, times in times_ms.items()}
    return {**medians, "ratio": statistics.median(first / other for first, other in pairs)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    keep_to_cores(1)
    rows = {}
    for path in asked.models:
        row = rows[path.name] = compare(path, asked.seconds)
        words = ", ".join(f"{name} {value:.3f}" for name, value in row.items())
        print(f"{path.name}: {words}", flush=True)
    write_json(asked.json, rows)


if __name__ == "__main__":
    main()
