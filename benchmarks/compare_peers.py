"""Compares armpy on NumbaAcc with LiteRT, OpenVINO and ONNX Runtime, model by model.

Every model is measured in a process of its own, pinned to as many cores as there are threads.
All engines are prepared in it, and then take turns: one call each, in an order that changes
every round, so that whatever else the machine does falls on all of them alike. A ratio is the
fastest peer's median divided by armpy's: above 1, armpy is faster. Its interval comes from
resampling the rounds. Every engine has inputs and outputs bound beforehand. An engine that ends
the process is looked for by measuring each beside armpy alone; its cell says so, and the others are
measured without it.

Usage::

    python -m benchmarks.compare_peers MODEL... [--threads 1,2] [--seconds S] [--json FILE]
        [--relaxed] [--csv FILE] [--svg FILE]

`benchmarks/keras_models.py` and `benchmarks/residual_models.py` make larger models for it. With
`--relaxed`, armpy may compute float32 as bfloat16, and OpenVINO is measured with its default
precision as well.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Figures: TypeAlias = dict[str, Any]  # Any: numbers and texts, as they go to JSON

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "backends" / "dynamic_examples" / "onnx_runtime"
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
) -> Figures:
    """Time every engine on one model, in this process, but for those that are left out."""
    from benchmarks.peers import (  # noqa: PLC0415  # threads are limited first
        ENGINES,
        RELAXED_ENGINES,
        Prepared,
        UnavailableError,
        example_inputs,
        kind_of_model,
        limit_threads,
    )

    limit_threads(num_threads)
    sys.path.insert(0, str(EXAMPLE))
    inputs = example_inputs(path)
    prepared: dict[str, Prepared] = {}
    missing: dict[str, str] = {}
    for name, prepare in (RELAXED_ENGINES if is_relaxed else ENGINES).items():
        if name in without:
            continue
        try:
            engine = prepare(path, inputs, num_threads)
            engine.run()
        except UnavailableError as error:
            missing[name] = str(error)
        except Exception as error:  # engines raise what they like
            if name == "armpy":
                raise
            missing[name] = f"{type(error).__name__}: {str(error)[:200]}"
        else:
            prepared[name] = engine
    runs = {name: engine.run for name, engine in prepared.items()}
    times = take_turns(runs, seconds, SETTLE_S if num_threads > 1 else 0.0)
    medians = {name: statistics.median(each) for name, each in times.items()}
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
        figures["ratio"] = medians[best] / medians["armpy"]
        figures["interval"] = interval(times[best], times["armpy"])
    return figures


def take_turns(
    runs: Mapping[str, Callable[[], object]], seconds: float, settle_s: float = 0.0
) -> dict[str, list[float]]:
    """Time of one call of each engine per round, in seconds.

    Notes
    -----
    With `settle_s` nothing is done for so long ahead of each engine's turn, and then it runs for
    so long without being timed: threads that another engine lets spin are asleep by then, and
    its own are awake and where they are to be.
    """
    bursts: dict[str, int] = {}
    for name, run in runs.items():
        for _ in range(5):
            run()
        begin = time.perf_counter()
        run()
        bursts[name] = max(1, math.ceil(BURST_S / max(time.perf_counter() - begin, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    shuffle = random.Random(0).shuffle
    end = time.perf_counter() + seconds
    while len(times[order[0]]) < LEAST_ROUNDS or (
        time.perf_counter() < end and len(times[order[0]]) < MOST_ROUNDS
    ):
        shuffle(order)
        for name in order:
            run, count = runs[name], bursts[name]
            if settle_s:
                settle(run, settle_s)
            begin = time.perf_counter()
            for _ in range(count):
                run()
            times[name].append((time.perf_counter() - begin) / count)
    return times


def settle(run: Callable[[], object], seconds: float) -> None:
    """Let threads of others go to sleep, and those of an engine wake up."""
    time.sleep(seconds)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        run()


def interval(theirs: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Where the ratio of medians lies in 95 of 100 resamplings of the rounds."""
    draw = random.Random(0)
    rounds = list(zip(theirs, ours, strict=True))
    ratios = []
    for _ in range(200):
        chosen = draw.choices(rounds, k=min(len(rounds), 500))
        ratios.append(
            statistics.median(a for a, _ in chosen) / statistics.median(b for _, b in chosen)
        )
    ratios.sort()
    return ratios[4], ratios[-5]


def measure_apart(
    path: Path, num_threads: int, seconds: float, *, is_relaxed: bool = False
) -> Figures:
    """`measure` in a process of its own, without the peers that would end it.

    Notes
    -----
    What has damaged memory may end the process in another's turn, so that who has run last says
    nothing: each peer is measured beside armpy alone.
    """

    def measured(without: Collection[str] = ()) -> Figures:
        command = [sys.executable, "-m", "benchmarks.compare_peers", "--one", str(path)]
        command += ["--threads", str(num_threads), "--seconds", str(seconds)]
        command += ["--relaxed"] * is_relaxed + ["--without", ",".join(without)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            figures: Figures = json.loads(done.stdout.splitlines()[-1])
            return figures
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
    crashed = {name: each["signal"] for name, each in alone.items() if "signal" in each}
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


def geometric_mean(ratios: Sequence[float]) -> float:
    """Geometric mean; NaN of nothing."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


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


def write_csv(path: Path, results: Sequence[Figures]) -> None:
    """Write the table as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "kind", "threads", *COLUMNS, "best_peer", "ratio", "low", "high"])
        for figures in results:
            medians, crashed = figures.get("median_us", {}), figures.get("crashed", {})
            low, high = figures.get("interval", ("", ""))
            writer.writerow(
                [figures["model"], figures.get("kind", ""), figures["threads"]]
                + [medians.get(name, crashed.get(name, "")) for name in COLUMNS]
                + [figures.get("best_peer", ""), figures.get("ratio", ""), low, high]
            )


def write_svg(path: Path, results: Sequence[Figures]) -> None:
    """Draw one bar per model: the ratio to the best peer, with a line at 1."""
    known = [figures for figures in results if "ratio" in figures]
    scale, height = 200, 22
    widest = max((figures["ratio"] for figures in known), default=1)
    width = 420 + scale * max(widest, 1) + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height * len(known) + 30}" font-family="sans-serif" font-size="12">'
    ]
    for number, figures in enumerate(known):
        y = 20 + number * height
        colour = "#2e7d32" if figures["ratio"] >= 1 else "#c62828"
        label = f"{figures['model']} ({figures['threads']} threads)"
        parts.append(f'<text x="410" y="{y + 13}" text-anchor="end">{label}</text>')
        parts.append(
            f'<rect x="420" y="{y}" width="{scale * figures["ratio"]:.1f}" height="{height - 5}" '
            f'fill="{colour}"/>'
        )
        end = 424 + scale * figures["ratio"]
        parts.append(f'<text x="{end:.1f}" y="{y + 13}">{figures["ratio"]:.2f}</text>')
    bottom = 20 + height * len(known)
    parts.append(
        f'<line x1="{420 + scale}" y1="10" x2="{420 + scale}" y2="{bottom}" stroke="#888"/>'
    )
    path.write_text("\n".join([*parts, "</svg>"]), "utf-8")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--without", default="", help=argparse.SUPPRESS)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each model")
    parser.add_argument("--relaxed", action="store_true", help="float32 may be less")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--svg", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        figures = measure(
            arguments.one,
            int(arguments.threads),
            arguments.seconds,
            is_relaxed=arguments.relaxed,
            without=arguments.without.split(","),
        )
        print(json.dumps(figures))
        return
    results = []
    print(f"{processor_name()}, {time.strftime('%Y-%m-%d')}", flush=True)
    for threads in map(int, arguments.threads.split(",")):
        for path in arguments.models:
            seconds, is_relaxed = arguments.seconds, arguments.relaxed
            results.append(measure_apart(path.resolve(), threads, seconds, is_relaxed=is_relaxed))
            print("  ".join(row(results[-1])), flush=True)
    print()
    print_table(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))
    if arguments.csv:
        write_csv(arguments.csv, results)
    if arguments.svg:
        write_svg(arguments.svg, results)


if __name__ == "__main__":
    main()
