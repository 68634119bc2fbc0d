"""Compares placement by measured cost with the best single backend, for each model.

A model runs on each backend alone (CpuRef takes what it lacks) and as ``preference="fastest"``
places it over all of them, each on one thread, in one process and by turns. The ratio is the time
of the best backend by the time of the placement: above 1, a mixture is faster than any of them.

Usage::

    python -m benchmarks.best_of MODEL [...] [--backends ID,...] [--turns N] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial
from pathlib import Path

import armpy
from armpy.core.turns import take_turns, timed
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from armpy.types import Preference
from benchmarks.common import description, keep_to_cores, write_json
from benchmarks.peers import random_inputs

FASTEST = "fastest"


def loaded(path: Path, backends: list[str], preference: Preference) -> armpy.Model:
    """The model on one thread for each backend."""
    options = RuntimeOptions(
        backends=[*backends, "CpuRef"],
        num_threads=1,
        backend_options={name: {"num_threads": 1} for name in backends if name != "NumbaAcc"},
        preference=preference,
    )
    return armpy.load(path, runtime=Runtime(options))


def measure(path: Path, backends: list[str], turns: int) -> dict[str, object]:
    """Median times in microseconds, the ratio, and where the placement runs the layers."""
    models = {FASTEST: loaded(path, backends, Preference.FASTEST)}
    for backend in backends:
        models[backend] = loaded(path, [backend], Preference.ORDER)
    arrays = random_inputs(models[FASTEST])
    calls = {name: timed(partial(model, *arrays)) for name, model in models.items()}
    take_turns(calls, 0.0, least=5)
    times = take_turns(calls, 0.0, least=turns)
    medians = {name: statistics.median(durations) for name, durations in times.items()}
    best = min(backends, key=medians.__getitem__)
    pairs = zip(times[best], times[FASTEST], strict=True)
    placement = models[FASTEST].placement
    shares = {} if placement is None else placement.layers_by_backend
    return {
        **{f"{name}_us": 1e6 * value for name, value in medians.items()},
        "best": best,
        "ratio": statistics.median(alone / fastest for alone, fastest in pairs),
        "layers": {name: count for name, count in shares.items() if count},
    }


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--backends", default="NumbaAcc,LiteRt,OpenVino,OrtCpu", metavar="ID,...")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    keep_to_cores(1)
    results = {}
    for path in arguments.models:
        try:
            row = measure(path, arguments.backends.split(","), arguments.turns)
        except ArmpyError as error:
            print(f"{path.name:40} {error}", flush=True)
            continue
        results[path.name] = row
        shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
        print(f"{path.name:40}", "  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    ratios = [float(str(row["ratio"])) for row in results.values()]
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
