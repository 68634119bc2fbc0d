"""Measures whether the placement that "fastest" chooses is as fast as any other.

For each model: what ``preference="fastest"`` has chosen, decided anew, against every backend with
all that it takes and the others with the rest, and against random mixtures. Half of these give
each layer to any backend that takes it; the others give each of two to five stretches of layers
to one. All run by turns in one process. A placement's time is the mean of the fastest quarter of
its turns, which other work on the machine meets least. Mixtures that take twice as long as the
chosen one in each of nine executions are counted as slower, and not run further; those that place
all layers alike count once. The chosen placement, loaded a second time, is the control: how far its
ratio is from 1 says what the machine's noise is.

Usage::

    python -m benchmarks.placement MODEL [...] [--mixtures N] [--rounds N] [--threads N]
                                   [--seconds S] [--json FILE]

With ``--seconds`` no more mixtures of a model are loaded after that time; the table says how many
there were.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import description, find_example, thread_variables, write_json

if TYPE_CHECKING:
    from armpy import OptimizedNetwork, Runtime

# The number of threads is set before anything is imported that has some.
# ruff: noqa: PLC0415

IDS = ("NumbaAcc", "OrtCpu", "CpuRef")
TURN_S = 1e-3
FAR = 2.0


@dataclass
class Runner:
    """A placement that is loaded.

    Attributes
    ----------
    name : str
    call : callable
        Executes once.
    close : callable
    first_s : float
        The best of a few executions.
    times_s : list of float
        One execution, in each turn.
    """

    name: str
    call: Callable[[], object]
    close: Callable[[], None]
    first_s: float
    times_s: list[float]

    @property
    def seconds(self) -> float:
        """One execution: the mean of the fastest quarter of the turns."""
        return statistics.fmean(sorted(self.times_s)[: max(1, len(self.times_s) // 4)])


def measure_model(
    path: Path, num_mixtures: int, rounds: int, threads: int, seconds: float
) -> dict[str, Any]:
    """What was chosen, and its time against that of each other placement."""
    import numpy as np

    import armpy
    from armpy import Preference
    from armpy.execution import NetworkProperties
    from armpy_tools.placement.trials import sample_inputs

    with runtime_of(threads) as runtime:
        graph = armpy.load(path, runtime=runtime).graph
        shapes = {
            value.name: tuple(
                dim or (1 if axis == 0 else 224) for axis, dim in enumerate(value.info.shape or ())
            )
            for value in graph.inputs
        }
        usual = armpy.optimize(graph, runtime, shapes=shapes)
        options = replace(runtime.options.optimizer_options(), preference=Preference.FASTEST)
        started = time.perf_counter()
        fastest = armpy.optimize(graph, runtime, options, shapes=shapes)
        decided_s = time.perf_counter() - started
        inputs = sample_inputs([value.info for value in fastest.source.inputs])

        def runner(name: str, assignment: Mapping[int, str], limit_s: float) -> Runner:
            network_id = runtime.load_network(
                replace(usual, assignment=dict(assignment)), NetworkProperties()
            )
            network = runtime.get_network(network_id)
            results = [np.empty_like(array) for array in network.run(inputs)]
            run = network.prepared_for(inputs).run
            call = lambda: run(inputs, list(results))  # noqa: E731
            first_s = best_of_few(call, limit_s)
            return Runner(name, call, lambda: runtime.unload_network(network_id), first_s, [])

        chosen = runner("chosen", fastest.assignment, float("inf"))
        control = runner("control", fastest.assignment, float("inf"))
        near: list[Runner] = []
        seen = [dict(fastest.assignment)]
        num_far = num_failed = 0
        for name, assignment in others(usual, runtime, num_mixtures):
            if assignment in seen:
                continue
            if time.perf_counter() > started + seconds and len(seen) > len(IDS):
                break
            seen.append(assignment)
            try:
                limit_s = FAR * best_of_few(chosen.call)
                other = runner(name, assignment, limit_s)
            except armpy.ArmpyError as error:
                print(f"  {name} cannot be loaded: {error}", file=sys.stderr)
                num_failed += 1
                continue
            if other.first_s > limit_s:
                num_far += 1
                other.close()
            else:
                near.append(other)
        race([chosen, control, *near], rounds)
        ratios = {runner.name: chosen.seconds / runner.seconds for runner in near}
        return {
            "model": path.name,
            "layers": len(usual.source.layers),
            "chosen": dict(fastest.placement.layers_by_backend),
            "alternatives": fastest.placement.describe_alternatives().splitlines(),
            "decided_s": decided_s,
            "chosen_us": 1e6 * chosen.seconds,
            "control": chosen.seconds / control.seconds,
            "worst_ratio": max(ratios.values(), default=1.0),
            "against": max(ratios, key=lambda name: ratios[name], default=""),
            "ratios": ratios,
            "others": len(seen) - 1,
            "far_slower": num_far,
            "failed": num_failed,
        }


def runtime_of(threads: int) -> Runtime:
    """A runtime of the three backends."""
    from armpy_numba_acc import NumbaBackend
    from armpy_onnxruntime import OrtCpu
    from armpy_reference import ReferenceBackend

    from armpy import Runtime, RuntimeOptions
    from armpy.backend import IBackendInternal
    from armpy.plugins import BackendRegistry

    registry = BackendRegistry()
    kinds: tuple[type[IBackendInternal], ...] = (NumbaBackend, OrtCpu, ReferenceBackend)
    for backend_id, kind in zip(IDS, kinds, strict=True):
        registry.register(backend_id, kind)
    return Runtime(RuntimeOptions(registry=registry, backends=IDS, num_threads=threads))


def others(
    network: OptimizedNetwork, runtime: Runtime, num_mixtures: int
) -> Iterator[tuple[str, dict[int, str]]]:
    """Every backend first, and random mixtures."""
    from armpy.compiler.assign import SupportOracle
    from armpy.execution.programs.placement_policy import choices_of

    choices = choices_of(network.source, SupportOracle(runtime._setup.backends), {})
    for backend_id in IDS:
        first = {key: backend_id if backend_id in ids else ids[0] for key, ids in choices.items()}
        if backend_id in first.values():
            yield backend_id, first
    numbers = random.Random(0)
    for number in range(num_mixtures):
        if number % 2:
            yield f"any {number}", {key: numbers.choice(ids) for key, ids in choices.items()}
        else:
            yield f"stretches {number}", stretches(numbers, choices)


def stretches(numbers: random.Random, choices: Mapping[int, Sequence[str]]) -> dict[int, str]:
    """One backend for each of a few stretches of layers, where it takes them."""
    keys = list(choices)
    cuts = {numbers.randrange(len(keys)) for _ in range(numbers.randint(1, 4))}
    wanted, chosen = numbers.choice(IDS), {}
    for place, key in enumerate(keys):
        if place in cuts:
            wanted = numbers.choice(IDS)
        chosen[key] = wanted if wanted in choices[key] else choices[key][0]
    return chosen


def race(runners: Sequence[Runner], rounds: int) -> None:
    """Let all run by turns."""
    from armpy.core.turns import take_turns, timed

    count = max(1, round(TURN_S / max(min(runner.first_s for runner in runners), 1e-9)))
    turns = {number: timed(runner.call, count) for number, runner in enumerate(runners)}
    for number, times_s in take_turns(turns, 0.0, least=rounds).items():
        runners[number].times_s += times_s


def best_of_few(call: Callable[[], object], limit_s: float = float("inf")) -> float:
    """Seconds of the best of three calls; of nine where none is below a limit, or one far above."""
    from armpy.core.turns import timed

    best_s, turn = float("inf"), timed(call)
    for number in range(9):
        last_s = turn()
        best_s = min(best_s, last_s)
        if last_s > 4 * limit_s or (number >= 2 and best_s <= limit_s):
            break
    return best_s


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--mixtures", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.environ.update(thread_variables(arguments.threads))
    find_example()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARMPY_CACHE_DIR"] = folder  # nothing is decided yet
        for path in arguments.models:
            from armpy import ArmpyError

            try:
                row = measure_model(
                    path,
                    arguments.mixtures,
                    arguments.rounds,
                    arguments.threads,
                    arguments.seconds,
                )
            except (ArmpyError, OSError) as error:
                print(f"{path.name:44} not measured: {error}", flush=True)
                continue
            rows.append(row)
            shares = ", ".join(f"{name} {count}" for name, count in row["chosen"].items())
            print(
                f"{row['model']:42} {row['layers']:4} layers {row['chosen_us']:9.1f} us  "
                f"{row['worst_ratio']:6.3f} of {row['against'] or 'none':13}"
                f" control {row['control']:5.3f}  of {row['others']} others"
                f" {len(row['ratios'])} near, {row['failed']} failed; {shares}",
                flush=True,
            )
            write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
