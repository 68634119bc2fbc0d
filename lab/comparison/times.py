"""Compares the speed of two trees: calls of models, overhead of a call, starts.

Times are taken a few milliseconds at a time in long-lived processes on one core and one thread.
Where memory happens to lie in a process makes it faster or slower by some percent for as long as it
lives, so every model is measured in several pairs of processes. An interval is that of the median
of these.
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
from armpy_tools.measure.ratio import geometric_mean, median_interval, units_of

from .sides import Side
from .subjects import measured_models
from .trees import Tree, TreeError

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

    Attributes
    ----------
    start_s : float
        Processor time from the start of the process to the model's first result.
    """

    def __init__(self, tree: Tree, model: Path | None, backend: str) -> None:
        core = max(os.sched_getaffinity(0))
        # Each tree's cache has measurements of the machine of its own, by which programs differ.
        alike = {"ARMPY_NUMBA_MACHINE": "typical"}
        self._process = tree.start("calls_child", alike, output=subprocess.PIPE, core=core)
        where, start_s = self._ask("load", str(model or ""), backend)
        self.start_s = float(start_s)
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
    backend: str,
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


def calls(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Calls with bound outputs, model by model."""
    for path in measured_models(options):
        figures = measure(old, new, path, ["bound"], options, options.backend[0])
        yield path.stem, figures["bound"]


def overhead(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Every way to call one layer of no work, on each backend."""
    for backend in options.backend:
        measured = measure(old, new, None, ["bound", "named", "plain"], options, backend)
        for way, figures in measured.items():
            yield f"{backend}, {way}", figures


def starts(old: Tree, new: Tree, options: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """Processes from their start to the first result, with everything compiled."""
    for path in measured_models(options):
        turns = [partial(start_s, tree, path, options.backend[0]) for tree in (old, new)]
        for turn in turns:
            turn()  # compiles what is not compiled yet
        times = take_turns(dict(enumerate(turns)), 0.0, least=options.starts)
        yield path.stem, figures_of([list(zip(times[0], times[1], strict=True))])


def start_s(tree: Tree, model: Path, backend: str) -> float:
    """Processor time of one start."""
    worker = Worker(tree, model, backend)
    worker.close()
    return worker.start_s


Measure = Callable[[Tree, Tree, argparse.Namespace], Iterator[tuple[str, Figures]]]

KINDS: dict[str, Measure] = {"calls": calls, "overhead": overhead, "starts": starts}
"""What can be measured."""


def compare(
    kind: str, old: Side, new: Side, options: argparse.Namespace
) -> tuple[int, dict[str, Figures]]:
    """Measure one kind and print a row for each model; no time is wrong.

    Raises
    ------
    TreeError
        If a tree cannot be run.
    """
    print(f"{kind}: old time over new; above 1, the new tree is faster", flush=True)
    rows = {}
    for name, figures in KINDS[kind](old.tree, new.tree, options):
        rows[name] = figures
        print(_row(name, figures), flush=True)
    ratios = [figures["ratio"] for figures in rows.values()]
    if not ratios:
        raise TreeError(f"there are no {kind} to compare")
    print(f"  geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return 0, rows


def _row(name: str, figures: Figures) -> str:
    """One line of the table."""
    ratio = "{ratio:.3f} ({low:.3f} to {high:.3f})".format(**figures)
    return f"  {name:44} {ratio}  {figures['old_us']:.4g} us, {figures['new_us']:.4g} us"
