"""Measures whether a model's time depends on what it is given: numbers that fade slow nothing down.

Each model is loaded once on NumbaAcc and one thread, and runs on inputs of several kinds in turns:
ordinary ones in [-1, 1), zeros, numbers around 1e-30 and 1e-39, and loud noise; stored integers are
any, zeros, and the lowest. A mask (an integer input so named) is all ones, or lets 8 positions
through. A ratio is that of the least times, as whatever else a machine does only adds to them.

Usage::

    python -m benchmarks.subnormals MODEL.tflite... [--seconds S] [--limit RATIO] [--json FILE]

The exit status is 1 if any ratio is above the limit (1.2).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

import armpy
from armpy.core.turns import take_turns, timed
from armpy.ops.operation import Array
from benchmarks.common import description, keep_to_cores, write_json
from benchmarks.peers import random_inputs

LEAST_ROUNDS = 15
KEPT_POSITIONS = 8
USUAL = "usual"


def _zeros(usual: Array, _: np.random.Generator) -> Array:
    return np.zeros_like(usual)


def _scaled(factor: float) -> Callable[[Array, np.random.Generator], Array]:
    """Make inputs of another magnitude; 8- and 16-bit integers are as low as can be."""

    def make(usual: Array, generator: np.random.Generator) -> Array:
        if usual.dtype.kind == "f":
            return (generator.normal(size=usual.shape) * factor).astype(usual.dtype)
        is_stored = usual.dtype.kind == "i" and usual.dtype.itemsize <= 2
        return np.full_like(usual, np.iinfo(usual.dtype).min if is_stored else 0)

    return make


def _noise(usual: Array, generator: np.random.Generator) -> Array:
    """Noise between 0 and 255; integers of a small range, so that indices stay inside."""
    if usual.dtype.kind == "f":
        return generator.uniform(0, 255, usual.shape).astype(usual.dtype)
    return generator.integers(0, 8, usual.shape).astype(usual.dtype)


KINDS: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    "zeros": _zeros,
    "1e-30": _scaled(1e-30),
    "1e-39": _scaled(1e-39),
    "noise": _noise,
}

MASKED = "masked"
"""The usual inputs with a mask that lets `KEPT_POSITIONS` through, where there is one."""

COLUMNS = (*KINDS, MASKED)


def measure(path: Path, seconds: float) -> dict[str, float]:
    """Ratio of each kind's time to the usual one's, and the usual one's time in microseconds."""
    options = armpy.RuntimeOptions(backends=["NumbaAcc", "CpuRef"], num_threads=1)
    model = armpy.load(path, runtime=armpy.Runtime(options))
    generator = np.random.default_rng(0)
    names = [spec.name for spec in model.inputs]
    pairs = zip(names, random_inputs(model), strict=True)
    usual = {name: _within(name, array) for name, array in pairs}
    feeds = {USUAL: usual, MASKED: {name: _masked(name, usual[name]) for name in names}}
    for kind, make in KINDS.items():
        feeds[kind] = {name: make(usual[name], generator) for name in names}
    for feed in feeds.values():
        model.run(feed)
    turns = {kind: timed(partial(model.run, feed)) for kind, feed in feeds.items()}
    times = take_turns(turns, seconds, least=LEAST_ROUNDS, most=sys.maxsize)
    least = {kind: min(durations) for kind, durations in times.items()}
    ratios = {kind: least[kind] / least[USUAL] for kind in COLUMNS}
    return {f"{USUAL}_us": 1e6 * least[USUAL], **ratios}


def _is_mask(name: str, array: Array) -> bool:
    """Whether an input says which positions count."""
    return "mask" in name and array.dtype.kind in "biu"


def _within(name: str, array: Array) -> Array:
    """Wide integers may be indices: they are kept small. All positions count."""
    if _is_mask(name, array):
        return np.ones_like(array)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 2:
        return (np.abs(array) % 8).astype(array.dtype)
    return array


def _masked(name: str, array: Array) -> Array:
    """The same, with a mask for few positions."""
    changed = array.copy()
    if _is_mask(name, array):
        changed[..., KEPT_POSITIONS:] = 0
    return changed


def main() -> int:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=1.2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    keep_to_cores(1)
    by_model: dict[str, dict[str, float]] = {}
    print(f"{'model':48}{USUAL + ' us':>12}", *(f"{kind:>8}" for kind in COLUMNS))
    for path in options.models:
        figures = measure(path, options.seconds)
        by_model[path.name] = figures
        ratios = " ".join(f"{figures[kind]:8.2f}" for kind in COLUMNS)
        print(f"{path.name:48}{figures[f'{USUAL}_us']:12.1f} {ratios}", flush=True)
    write_json(options.json, by_model)
    worst = max(figures[kind] for figures in by_model.values() for kind in COLUMNS)
    print(f"largest ratio {worst:.2f}, limit {options.limit:g}")
    return int(worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
