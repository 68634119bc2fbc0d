"""Images per second of many callers on one model, and of batches, beside other engines.

``python -m lab.benchmarks.throughput MODEL... [--callers 8] [--cores 2] [--seconds S]``
measures each model in a process of its own that is kept on so many cores. Every engine is set up
as its documentation says for many callers, in each of the ways that may be meant, and the
configurations take turns: all callers begin together, run for a moment, and are counted.
A ratio is armpy's images by those of the best peer, each taken in the same round, in the median.

``--batches 1,2,4,8,16`` measures single calls with so many images instead.

On a machine that others use as well, an engine with more threads gets more of it. So there are
two figures: images per second, and images per second of a processor that the process had.
On an idle machine that is kept busy, the second one is the first by the number of cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import armpy
from armpy.core.turns import take_turns
from armpy.errors import BackendUnavailableError
from armpy.ops.operation import Array
from armpy_tools.measure.engines import OpenVino
from armpy_tools.measure.ratio import geometric_mean
from lab.benchmarks.common import description, run_python, write_json
from lab.benchmarks.peers import ENGINES as ONE_CALL
from lab.benchmarks.peers import example_inputs, peer

Figures: TypeAlias = dict[str, Any]  # Any: numbers and texts, as they go to JSON
Turn: TypeAlias = Callable[[float], list[int]]
"""Runs for about so many seconds; gives the calls of each caller."""

TURN_S = 0.4
PAUSE_S = 0.05
"""Ahead of each turn, in which threads that another engine lets spin go to sleep."""
LEAST_ROUNDS = 5


def calling(calls: Sequence[Callable[[], object]]) -> Turn:
    """A thread for each of these calls, which makes it again and again."""

    def turn(seconds: float) -> list[int]:
        counts = [0] * len(calls)
        begin = threading.Barrier(len(calls))

        def work(number: int) -> None:
            call, count = calls[number], 0
            begin.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                call()
                count += 1
            counts[number] = count

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return counts

    return turn


def armpy_turns(path: Path, inputs: Sequence[Array], callers: int, cores: int) -> dict[str, Turn]:
    """One model that all callers share: `Model.run` with outputs of their own, and bound."""
    options = armpy.RuntimeOptions(
        backends=["NumbaAcc", "CpuRef"], backend_options={"NumbaAcc": {"num_threads": cores}}
    )
    model = armpy.load(path, runtime=armpy.Runtime(options))
    feeds = {info.name: array for info, array in zip(model.inputs, inputs, strict=True)}

    def running() -> Callable[[], object]:
        own = {name: array.copy() for name, array in feeds.items()}
        outputs = model.run(own)
        return lambda: model.run(own, outputs)

    return {
        "armpy, run": calling([running() for _ in range(callers)]),
        "armpy, bound": calling([model.bind(feeds) for _ in range(callers)]),
    }


def litert_turns(path: Path, inputs: Sequence[Array], callers: int, cores: int) -> dict[str, Turn]:
    """An interpreter for each caller; see `LiteRt`."""
    return _by_threads("litert", "LiteRT", path, inputs, callers, cores)


def onnx_turns(path: Path, inputs: Sequence[Array], callers: int, cores: int) -> dict[str, Turn]:
    """One session, on which any number of threads may call ``run``; see `OnnxRuntime`."""
    return _by_threads("onnxruntime", "ONNX Runtime", path, inputs, callers, cores)


def _by_threads(
    name: str, title: str, path: Path, inputs: Sequence[Array], callers: int, cores: int
) -> dict[str, Turn]:
    """A peer with one thread, and with as many as there are cores."""
    turns = {}
    for num_threads in sorted({1, cores}):
        engine = peer(name, path, inputs, num_threads, callers)
        calls = [engine.caller() for _ in range(callers)]
        turns[f"{title}, {num_threads} threads"] = calling(calls)
    return turns


def openvino_turns(
    path: Path, inputs: Sequence[Array], callers: int, cores: int
) -> dict[str, Turn]:
    """THROUGHPUT's streams, fed by an ``AsyncInferQueue``, or by callers that wait."""
    engine = peer("openvino", path, inputs, cores, callers)
    assert isinstance(engine, OpenVino)
    import openvino as ov  # noqa: PLC0415  # it is installed

    def queued(jobs: int) -> Turn:
        queue = ov.AsyncInferQueue(engine.compiled, jobs)
        for request in queue:
            engine.filled(request)

        def turn(seconds: float) -> list[int]:
            count, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                queue.start_async()
                count += 1
            queue.wait_all()
            return [count]

        return turn

    best = engine.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    return {
        f"OpenVINO, queue of {best}": queued(best),
        f"OpenVINO, queue of {callers}": queued(callers),
        "OpenVINO, callers": calling([engine.caller() for _ in range(callers)]),
    }


ENGINES = (armpy_turns, litert_turns, onnx_turns, openvino_turns)


def batch_turns(path: Path, inputs: Sequence[Array], callers: int, cores: int) -> dict[str, Turn]:
    """One caller of every engine that takes inputs as they are, set for one call at a time."""
    del callers
    turns: dict[str, Turn] = {}
    for name, prepare in ONE_CALL.items():
        try:
            turns[name] = calling([prepare(path, inputs, cores).run])
        except Exception as error:  # engines raise what they like
            if name == "armpy":
                raise
            print(f"{name} does not take {path.name}: {str(error)[:150]}", file=sys.stderr)
    return turns


def measure(path: Path, callers: int, cores: int, seconds: float, batch: int) -> Figures:
    """Measure every engine on one model, in this process."""
    inputs = example_inputs(path, batch)
    turns: dict[str, Turn] = {}
    missing: dict[str, str] = {}
    for prepare in (batch_turns,) if callers == 1 else ENGINES:
        try:
            turns.update(prepare(path, inputs, callers, cores))
        except BackendUnavailableError as error:
            missing[prepare.__name__.removesuffix("_turns")] = str(error)
    for turn in turns.values():
        turn(TURN_S / 4)
    measured = {name: partial(_measured, turn, batch) for name, turn in turns.items()}
    turns_of = take_turns(measured, seconds * len(turns), least=LEAST_ROUNDS, most=sys.maxsize)
    shares = {name: [share for _, share in turns_taken] for name, turns_taken in turns_of.items()}
    figures = summary(
        {name: [rates for rates, _ in turns_taken] for name, turns_taken in turns_of.items()}
    )
    return {
        "model": path.name,
        "callers": callers,
        "cores": cores,
        "batch": batch,
        "missing": missing,
        "least_by_most_of_callers": {
            name: statistics.median(shares_of_one) for name, shares_of_one in shares.items()
        },
        **figures,
    }


def _measured(turn: Turn, batch: int) -> tuple[tuple[float, float], float]:
    """Images per second and per second of a processor; the least caller by the most."""
    time.sleep(PAUSE_S)
    began, used = time.perf_counter(), time.process_time()
    counts = turn(TURN_S)
    images = batch * sum(counts)
    passed, used = time.perf_counter() - began, time.process_time() - used
    return (images / passed, images / max(used, 1e-9)), min(counts) / max(*counts, 1)


def summary(rates: Mapping[str, Sequence[tuple[float, float]]]) -> Figures:
    """Medians of all, and armpy's best configuration by the best one of all peers."""
    medians = {
        name: [statistics.median(pair[kind] for pair in rates_of_one) for kind in (0, 1)]
        for name, rates_of_one in rates.items()
    }
    figures: Figures = {"per_second": {}, "per_processor_second": {}}
    for kind, key in enumerate(("per_second", "per_processor_second")):
        figures[key] = {name: median[kind] for name, median in medians.items()}
        ours = [name for name in medians if name.startswith("armpy")]
        peers = [name for name in medians if name not in ours]
        if not peers:
            continue
        best = max(peers, key=lambda name: medians[name][kind])
        for name in ours:
            ratios = [a[kind] / b[kind] for a, b in zip(rates[name], rates[best], strict=True)]
            figures.setdefault(f"ratios_{key}", {})[name] = statistics.median(ratios)
        figures[f"best_peer_{key}"] = best
    return figures


def measure_apart(path: Path, callers: int, cores: int, seconds: float, batch: int) -> Figures:
    """`measure` in a process of its own."""
    command = ["-m", "lab.benchmarks.throughput", "--one", str(path)]
    command += ["--callers", str(callers), "--cores", str(cores), "--seconds", str(seconds)]
    command += ["--batches", str(batch)]
    done = run_python(command, num_cores=cores)
    if done.returncode:
        return {"model": path.name, "batch": batch, "error": done.stderr[-2000:]}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def show(figures: Figures) -> None:
    """Print one model's figures."""
    print(f"{figures['model']}, batch {figures['batch']}", flush=True)
    if "error" in figures:
        print(f"  failed: {figures['error']}")
        return
    for name, rate in figures["per_second"].items():
        per_processor = figures["per_processor_second"][name]
        share = figures["least_by_most_of_callers"][name]
        print(f"  {name:26} {rate:10.1f}/s {per_processor:10.1f}/s of a processor {share:6.2f}")
    for key in ("per_second", "per_processor_second"):
        for name, ratio in figures.get(f"ratios_{key}", {}).items():
            print(f"  {name} by {figures[f'best_peer_{key}']}, {key}: {ratio:.2f}")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each configuration")
    parser.add_argument("--batches", help="measure one caller with so many images in a call")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds = options.seconds
    if options.one:
        batch = int(options.batches)
        print(json.dumps(measure(options.one, options.callers, options.cores, seconds, batch)))
        return
    callers = 1 if options.batches else options.callers
    results = []
    for path in options.models:
        for batch in map(int, (options.batches or "1").split(",")):
            results.append(measure_apart(path.resolve(), callers, options.cores, seconds, batch))
            show(results[-1])
    for key in ("ratios_per_second", "ratios_per_processor_second"):
        best = [max(result[key].values()) for result in results if key in result]
        if best:
            print(f"{key}: geometric mean {geometric_mean(best):.2f}, least {min(best):.2f}")
    write_json(options.json, results)


if __name__ == "__main__":
    main()
