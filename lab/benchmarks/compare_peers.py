"""Compares armpy on NumbaAcc with LiteRT, OpenVINO and ONNX Runtime, model by model.

Every model is measured in a process of its own, pinned to as many cores as there are threads.
All engines are prepared in it, and then take turns: one call each, in an order that changes
every round, so that whatever else the machine does falls on all of them alike. A ratio is the
time of the peer with the least median divided by armpy's in the same round, in the median: above
1, armpy is faster. Its interval is that of a median. Every engine has inputs and outputs bound
beforehand. An engine that ends the process is looked for by measuring each beside armpy alone; its
cell says so, and the others are measured without it.

Usage::

    python -m lab.benchmarks.compare_peers MODEL... [--threads 1,2] [--seconds S] [--json FILE]
        [--relaxed] [--busy SHARE]
        [--shapes NAME=N,N...] [--values NAME=NUMBER...]

`keras_models.py` and `torch_files.py` beside it make larger models. With `--relaxed`, armpy may
compute float32 as bfloat16, and OpenVINO is measured with its default precision as well. With
`--busy`, another process runs on the last core for this share of every 10 ms. With `--shapes`,
inputs of these names have these shapes; with `--values`, inputs of these names are full of a
number.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from armpy.core.turns import take_turns
from armpy.errors import BackendUnavailableError
from armpy_tools.measure.ratio import geometric_mean, median_interval
from lab.benchmarks.common import (
    description,
    keep_to_cores,
    named_numbers,
    run_python,
    write_json,
)
from lab.benchmarks.peers import (
    ENGINES,
    NO_NUMBERS,
    RELAXED_ENGINES,
    Numbers,
    ReadyEngine,
    example_inputs,
    kind_of_model,
)

Figures: TypeAlias = dict[str, Any]  # Any: numbers and texts, as they go to JSON

LEAST_ROUNDS = 30
MOST_ROUNDS = 20_000
SETTLE_S = 0.03
BURST_S = 2e-4
"""Calls that are shorter than this are timed several at a time."""


def measure(
    path: Path,
    num_threads: int,
    seconds: float,
    *,
    is_relaxed: bool = False,
    without: Collection[str] = (),
    shapes: Numbers = NO_NUMBERS,
    values: Numbers = NO_NUMBERS,
) -> Figures:
    """Time every engine on one model, in this process, but for those that are left out."""
    inputs = example_inputs(path, shapes=shapes, values=values)
    settle_s = SETTLE_S if num_threads > 1 else 0.0
    turns: dict[str, Callable[[], float]] = {}
    missing: dict[str, str] = {}
    for name, prepare in (RELAXED_ENGINES if is_relaxed else ENGINES).items():
        if name in without:
            continue
        try:
            turn = settled(prepare(path, inputs, num_threads), settle_s)
            turn()
        except BackendUnavailableError as error:
            missing[name] = str(error)
        except Exception as error:  # engines raise what they like
            if name == "armpy":
                raise
            missing[name] = f"{type(error).__name__}: {str(error)[:200]}"
        else:
            turns[name] = turn
    times = take_turns(turns, seconds, least=LEAST_ROUNDS, most=MOST_ROUNDS)
    medians = {name: statistics.median(durations) for name, durations in times.items()}
    figures: Figures = {
        "model": path.name,
        "kind": kind_of_model(path),
        "threads": num_threads,
        "relaxed": is_relaxed,
        "processor": processor_name(),
        "median_us": {name: 1e6 * median for name, median in medians.items()},
        "missing": missing,
        "rounds": len(times["armpy"]),
    }
    peers = [name for name in medians if name != "armpy"]
    if peers:
        best = min(peers, key=medians.__getitem__)
        figures["best_peer"] = best
        ratios = [a / b for a, b in zip(times[best], times["armpy"], strict=True)]
        figures["ratio"] = statistics.median(ratios)
        figures["interval"] = median_interval(ratios)
    return figures


def settled(engine: ReadyEngine, settle_s: float) -> Callable[[], float]:
    """A turn of an engine, ahead of which nothing is done for a while, and it runs for a while.

    Notes
    -----
    Threads that another engine lets spin are asleep by then, and its own are awake and where they
    are to be. It runs a number of times, and not until a time: a time mostly comes while another
    process has the core, whose traces in the caches the first measured call would pay for.
    """
    measured = engine.turn(BURST_S)
    if not settle_s:
        return measured
    warm_up = engine.turn(settle_s)

    def turn() -> float:
        time.sleep(settle_s)
        warm_up()
        return measured()

    return turn


PERIOD_S = 0.01
"""Of a competing process: how long it runs and sleeps together."""


@contextmanager
def competing(share: float) -> Iterator[None]:
    """Have a process run on the last core for a share of the time; none if it is 0."""
    if share == 0:
        yield
        return
    command = [sys.executable, "-m", "lab.benchmarks.compare_peers", "--compete", str(share)]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def compete(share: float) -> None:
    """Run for a share of every period, until the process is ended."""
    keep_to_cores(1)
    while True:
        end = time.perf_counter() + share * PERIOD_S
        while time.perf_counter() < end:
            pass
        time.sleep((1 - share) * PERIOD_S)


def measure_apart(
    path: Path,
    num_threads: int,
    seconds: float,
    *,
    is_relaxed: bool = False,
    busy: float = 0.0,
    asked: Sequence[str] = (),
) -> Figures:
    """`measure` in a process of its own, without the peers that would end it.

    Parameters
    ----------
    path, num_threads, seconds, is_relaxed
        See `measure`.
    asked : sequence of str
        Arguments of the command line for shapes and values.

    Notes
    -----
    What has damaged memory may end the process in another's turn, so that who has run last says
    nothing: each peer is measured beside armpy alone.
    """

    def measured(without: Collection[str] = ()) -> Figures:
        command = ["-m", "lab.benchmarks.compare_peers", "--one", str(path)]
        command += ["--threads", str(num_threads), "--seconds", str(seconds)]
        command += ["--relaxed"] * is_relaxed + ["--without", ",".join(without), *asked]
        with competing(busy):
            done = run_python(command, num_cores=num_threads)
        if done.returncode == 0:
            figures: Figures = json.loads(done.stdout.splitlines()[-1])
            return {**figures, "busy": busy}
        figures = {"model": path.name, "threads": num_threads, "error": done.stderr[-2000:]}
        if done.returncode < 0:
            figures["signal"] = signal_name(-done.returncode)
            figures["error"] = f"ended by {figures['signal']}"
        return figures

    figures = measured()
    if "signal" not in figures:
        return figures
    peers = [name for name in COLUMNS if name != "armpy"]
    alone = {name: measured([other for other in peers if other != name]) for name in peers}
    crashed = {name: figures["signal"] for name, figures in alone.items() if "signal" in figures}
    figures = measured([*crashed])
    if "error" not in figures:
        figures["crashed"] = crashed
    return figures


def signal_name(number: int) -> str:
    """What a signal is called."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def processor_name() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def row(figures: Figures) -> list[str]:
    """One line of the table."""
    if "error" in figures:
        return [figures["model"], str(figures["threads"]), "failed", figures["error"][-80:]]
    medians = figures["median_us"]
    crashed = figures.get("crashed", {})
    shown = [
        f"{medians[name]:.4g}" if name in medians else crashed.get(name, "-") for name in COLUMNS
    ]
    low, high = figures.get("interval", (math.nan, math.nan))
    ratio = f"{figures.get('ratio', math.nan):.2f} ({low:.2f} to {high:.2f})"
    return [figures["model"], str(figures["threads"]), *shown, ratio]


COLUMNS = ("armpy", "LiteRT", "OpenVINO", "OpenVINO default", "ONNX Runtime")


def print_table(results: Sequence[Figures]) -> None:
    """Print all figures, and geometric means by kind of model and number of threads."""
    heads = ["model", "threads", *(f"{name} (us)" for name in COLUMNS), "ratio to the best peer"]
    lines = [heads, *map(row, results)]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(heads))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)))
    for threads in sorted({figures["threads"] for figures in results}):
        for kind in ("float32", "quantised"):
            ratios = [
                figures["ratio"]
                for figures in results
                if (figures["threads"], figures.get("kind")) == (threads, kind)
                and "ratio" in figures
            ]
            if ratios:
                least = min(ratios)
                text = f"geometric mean {geometric_mean(ratios):.2f}, least {least:.2f}"
                print(f"{kind}, {threads} threads: {text} of {len(ratios)}")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--without", default="", help=argparse.SUPPRESS)
    parser.add_argument("--compete", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each model")
    parser.add_argument("--relaxed", action="store_true", help="float32 may be less")
    parser.add_argument("--busy", type=float, default=0.0, help="share of a competing process")
    parser.add_argument("--json", type=Path)
    for name in ("shapes", "values"):
        parser.add_argument(f"--{name}", nargs="*", default=[], metavar="NAME=N,N")
    arguments = parser.parse_args()
    if arguments.compete is not None:
        compete(arguments.compete)
    if arguments.one:
        figures = measure(
            arguments.one,
            int(arguments.threads),
            arguments.seconds,
            is_relaxed=arguments.relaxed,
            without=arguments.without.split(","),
            shapes=dict(map(named_numbers, arguments.shapes)),
            values=dict(map(named_numbers, arguments.values)),
        )
        print(json.dumps(figures))
        return
    asked = ["--shapes", *arguments.shapes, "--values", *arguments.values]
    results = []
    print(f"{processor_name()}, {time.strftime('%Y-%m-%d')}", flush=True)
    for threads in map(int, arguments.threads.split(",")):
        for path in arguments.models:
            figures = measure_apart(
                path.resolve(),
                threads,
                arguments.seconds,
                is_relaxed=arguments.relaxed,
                busy=arguments.busy,
                asked=asked,
            )
            results.append(figures)
            print("  ".join(row(results[-1])), flush=True)
    print()
    print_table(results)
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
