"""Compares the speed of two source trees: calls of models, overhead of a call, warm starts.

Each tree runs in long-lived processes of its own on one core and one thread. They take turns, a few
milliseconds each in an order that changes every round, so that whatever else the machine does falls
on both alike; only ratios of the two mean anything: above 1, the new tree is faster. Where memory
happens to lie in a process makes it faster or slower by some percent for as long as it lives,
so every model is measured in several pairs of processes. An interval is that of the median of
these.

Usage::

    python -m benchmarks.compare_trees OLD [NEW] [--models MODEL...] [--only models,overhead,starts]
        [--pairs N] [--seconds S] [--json FILE]

OLD and NEW are folders or revisions; NEW is this checkout if left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from armpy.core.turns import take_turns
from armpy_conformance.measure.ratio import geometric_mean, median_interval, units_of
from benchmarks.common import ROOT, description, write_json
from benchmarks.starts import ARMPY, start
from scripts.comparison.trees import Store, Tree, TreeError, default_store

SHARED = ROOT.parent / "shared" / "models"
FAMILIES = ("coral", "keras", "micro", "mlperf_tiny")
"""Folders of the models that are measured unless others are named."""

BURST_S = 0.004
LEAST_ROUNDS = 20

Figures = dict[str, float]

Rounds = list[tuple[float, float]]
"""Seconds of the old tree and of the new one, round by round."""


class Worker:
    """A process that times one tree.

    Parameters
    ----------
    tree : Tree
    model : Path or None
        None for one layer of no work.
    backend : str
    """

    def __init__(self, tree: Tree, model: Path | None, backend: str = "NumbaAcc") -> None:
        core = max(os.sched_getaffinity(0))
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("tree_worker.py"))],
            env=tree.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - no threads
        )
        where = self._ask("prepare", str(model or ""), backend)
        if not Path(where).is_relative_to(tree.folder):
            raise TreeError(f"{where} is not of {tree.name}")

    def time(self, way: str, num_calls: int) -> float:
        """Seconds of one of several calls."""
        return float(self._ask("time", way, num_calls)) / num_calls

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, *order: object) -> Any:  # Any: what the order answers with
        """Send an order and wait for the answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # it was asked for
        assert stdout is not None
        print(json.dumps(order), file=stdin, flush=True)
        line = stdout.readline()
        if not line:
            raise TreeError(f"a process ended with code {self._process.wait()}")
        return json.loads(line)


def rounds_of(old: Worker, new: Worker, ways: Sequence[str], seconds: float) -> dict[str, Rounds]:
    """Times of both trees' calls, round by round, for each way to call."""
    turns = {}
    for way in ways:
        count = max(1, math.ceil(BURST_S / max(new.time(way, 3), 1e-7)))
        for side, worker in enumerate((old, new)):
            turns[way, side] = partial(worker.time, way, count)
    durations = take_turns(turns, seconds, least=LEAST_ROUNDS, most=sys.maxsize)
    return {way: list(zip(durations[way, 0], durations[way, 1], strict=True)) for way in ways}


def ratio_of(pairs: Sequence[Rounds]) -> float:
    """Old time over new: the median over pairs of processes.

    Notes
    -----
    Of each process counts the lower quartile of its rounds: what else the machine does adds to
    times only, and a round that it does not touch is rare where it is busy.
    """
    return statistics.median(
        quartile([old for old, _ in rounds]) / quartile([new for _, new in rounds])
        for rounds in pairs
    )


def quartile(times: Sequence[float]) -> float:
    """The time that a quarter of some are below."""
    return sorted(times)[len(times) // 4]


def interval(pairs: Sequence[Rounds]) -> tuple[float, float]:
    """Between which ratios of pairs, or of blocks of their rounds if they are few, it lies."""
    return median_interval([ratio_of([rounds]) for rounds in units_of(pairs)])


def figures_of(pairs: Sequence[Rounds]) -> Figures:
    """Ratio, interval, and each tree's least time in microseconds."""
    low, high = interval(pairs)
    return {
        "ratio": ratio_of(pairs),
        "low": low,
        "high": high,
        "old_us": 1e6 * min(old for rounds in pairs for old, _ in rounds),
        "new_us": 1e6 * min(new for rounds in pairs for _, new in rounds),
    }


def measure(
    old: Tree,
    new: Tree,
    model: Path | None,
    ways: Sequence[str],
    options: argparse.Namespace,
    backend: str = "NumbaAcc",
) -> dict[str, Figures]:
    """Figures of a model, for each way to call it."""
    by_way: dict[str, list[Rounds]] = {way: [] for way in ways}
    for number in range(options.pairs):
        workers: dict[str, Worker] = {}
        try:
            # The second process to start may get better pages: neither tree always is the second.
            for tree in (old, new) if number % 2 else (new, old):
                workers["old" if tree is old else "new"] = Worker(tree, model, backend)
            turns = rounds_of(workers["old"], workers["new"], ways, options.seconds)
        finally:
            for worker in workers.values():
                worker.close()
        for way, rounds in turns.items():
            by_way[way].append(rounds)
    return {way: figures_of(pairs) for way, pairs in by_way.items()}


def models(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Calls with bound outputs, model by model."""
    for path in options.models:
        yield path.stem, measure(old, new, path.resolve(), ["bound"], options)["bound"]


def overhead(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Every way to call one layer of no work, on each backend."""
    for backend in ("NumbaAcc", "CpuRef"):
        measured = measure(old, new, None, ["bound", "named", "plain"], options, backend)
        for way, figures in measured.items():
            yield f"{backend}, {way}", figures


def starts(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Processes from their start to the first result, with everything compiled."""
    for path in options.models:
        environments = [tree.environment() for tree in (old, new)]
        for environment in environments:
            start(ARMPY, path.resolve(), variables=environment)
        rounds = []
        for number in range(options.starts):
            order = (0, 1) if number % 2 else (1, 0)
            times = {
                side: start(ARMPY, path.resolve(), variables=environments[side]) for side in order
            }
            rounds.append((1e-3 * times[0]["cpu_ms"], 1e-3 * times[1]["cpu_ms"]))
        yield path.stem, figures_of([rounds])


Measure = Callable[[Tree, Tree, argparse.Namespace], Iterator[tuple[str, Figures]]]

KINDS: dict[str, Measure] = {"models": models, "overhead": overhead, "starts": starts}
"""What can be measured."""


def main() -> int:
    """Measure what the command line asks for; the exit status."""
    options = _options()
    results: dict[str, dict[str, Figures]] = {}
    try:
        store = Store(default_store())
        old, new = (Tree.named(text, store, ROOT) for text in (options.old, options.new))
        for kind in options.only:
            rows = results[kind] = {}
            print(f"{kind}: old time over new; above 1, the new tree is faster", flush=True)
            for name, figures in KINDS[kind](old, new, options):
                rows[name] = figures
                print(_row(name, figures), flush=True)
            ratios = [figures["ratio"] for figures in rows.values()]
            print(f"  geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    except TreeError as error:
        print(f"compare_trees: error: {error}", file=sys.stderr)
        return 2
    write_json(options.json, results)
    return 0


def _row(name: str, figures: Figures) -> str:
    """One line of the table."""
    ratio = "{ratio:.3f} ({low:.3f} to {high:.3f})".format(**figures)
    return f"  {name:44} {ratio}  {figures['old_us']:.4g} us, {figures['new_us']:.4g} us"


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("old", help="folder or revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="folder or revision; this one")
    model_files = [
        path for family in FAMILIES for path in sorted((SHARED / family).glob("*.tflite"))
    ]
    parser.add_argument("--models", nargs="+", type=Path, default=model_files, metavar="MODEL")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--pairs", type=int, default=5, help="of processes, for each model")
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls, for each pair")
    parser.add_argument("--starts", type=int, default=15, help="of each tree, for each model")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := set(options.only) - set(KINDS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
