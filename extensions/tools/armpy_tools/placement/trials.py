"""Trials: candidate placements of a network, run on this machine by turns."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.plugins.hooks import Alternative, PlacementDecision
from armpy.profiling import EventKind, Profiler
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType
from armpy_tools.placement.candidates import Candidates, PlacementCandidate
from armpy_tools.placement.cost_table import CostTable
from armpy_tools.placement.decisions import MEASURED

if TYPE_CHECKING:
    from armpy.execution import LoadedNetwork

Load: TypeAlias = "Callable[[Mapping[int, BackendId], Profiler | None], LoadedNetwork]"
"""Loads the network with each layer on the backend of a mapping by layer id."""

_log = logging.getLogger("armpy_tools.placement")

RACE_S = 1.5
"""How long candidates run by turns, all together."""

DEADLINE_S = 20.0
"""A candidate whose first execution takes longer is left out, be it hanging."""

MOST_ROUNDS = 60
SAMPLE_S = 300e-6
"""How long a candidate runs in its turn, at least."""

FAR_SLOWER = 6.0
"""Candidates that take so many times as long as the fastest are out of the race at once."""

SLOWER = 1.4
"""And those that still take so many times as long after some rounds."""

SIMPLER = 1.01
"""A candidate with fewer backends is chosen if it takes no longer than so many times the best."""


@dataclass(eq=False, slots=True)
class PlacementTrial:
    """A candidate that is loaded."""

    candidate: PlacementCandidate
    """With the backends that the layers have really got."""
    network: LoadedNetwork
    call: Callable[[], object]
    """Executes once."""
    turn_s: float
    """Time of one execution in the first turn."""
    times_s: list[float]
    """Time of one execution in each turn of the race."""

    @property
    def seconds(self) -> float:
        """One execution: the mean of the fastest quarter of all turns.

        Notes
        -----
        Whatever else the machine does only ever adds to a turn.
        """
        times = sorted(self.times_s or [self.turn_s])
        return statistics.fmean(times[: (len(times) + 3) // 4])

    def run_turn(self) -> None:
        """Take a turn in the race."""
        count = max(1, round(SAMPLE_S / max(self.turn_s, 1e-9)))
        started = time.perf_counter()
        for _ in range(count):
            self.call()
        self.times_s.append((time.perf_counter() - started) / count)


class Trials:
    """The trials of one network; `estimates` are costs by the devices' figures."""

    def __init__(
        self, graph: Graph, candidates: Candidates, estimates: CostTable, load: Load
    ) -> None:
        self._graph = graph
        self._candidates = candidates
        self._estimates = estimates
        self._load = load
        self._inputs = sample_inputs([value.info for value in graph.inputs])
        self._trials: dict[tuple[BackendId, ...], PlacementTrial] = {}
        self._failures: list[Alternative] = []

    def decide(self) -> PlacementDecision | None:
        """Measure and choose; None if no candidate could be run.

        Notes
        -----
        Each backend with all that it takes is run first, and once more step by step. With the
        times of the steps as costs the cheapest mixtures are found, which then run against the
        former by turns, so that whatever else the machine does meets all of them.
        """
        try:
            for candidate in self._candidates.all:
                self._open(candidate)
            self._add_mixtures()
            self._race()
            return self._decision() if self._trials else None
        finally:
            for trial in self._trials.values():
                trial.network.close()

    def _open(self, candidate: PlacementCandidate) -> None:
        """Load a candidate and run it, if it is not there already in another name."""
        try:
            network = self._load(candidate.backends, None)
            got = _assignment(network, candidate)
            # Fallback may make of one candidate what another is.
            if tuple(got.values()) in self._trials:
                network.close()
                return
            call = self._call_of(network)
            call()
            trial = PlacementTrial(
                replace(candidate, backends=got), network, call, _seconds(call), []
            )
        except ArmpyError as error:
            _log.info("the placement '%s' is not tried: %s", candidate.name, error)
            self._failures.append(candidate.alternative(failure=str(error)))
            return
        self._trials[tuple(got.values())] = trial

    def _call_of(self, network: LoadedNetwork) -> Callable[[], object]:
        """Make a call that executes a network with the sample, in memory allocated once."""
        outputs = network.run(self._inputs, deadline_s=DEADLINE_S)
        results: list[Array | None] = [np.empty_like(array) for array in outputs]
        run = network.prepared_for(self._inputs).run
        return lambda: run(self._inputs, results)

    def _add_mixtures(self) -> None:
        """Find mixtures with what each layer has taken, and open them."""
        known = len(self._candidates.all)
        measured = MeasuredCosts(self._layer_times(), self._estimates)
        self._candidates.add_mixtures((measured, CutCosts(measured), self._estimates))
        for candidate in self._candidates.all[known:]:
            self._open(candidate)

    def _layer_times(self) -> dict[tuple[int, BackendId], float]:
        """Return microseconds in the trials so far, by layer id and backend."""
        layer_times: dict[tuple[int, BackendId], float] = {}
        for trial in [*self._trials.values()]:
            try:
                times = self._profiled(trial)
            except ArmpyError as error:
                _log.info("the placement '%s' is not profiled: %s", trial.candidate.name, error)
                continue
            for key, duration in times.items():
                layer_times[key] = min(duration, layer_times.get(key, duration))
        return layer_times

    def _profiled(self, trial: PlacementTrial) -> dict[tuple[int, BackendId], float]:
        """Microseconds of each layer; those of one step have shares of it as they are estimated."""
        profiler = Profiler()
        network = self._load(trial.candidate.backends, profiler)
        try:
            network.run(self._inputs)
            # The first execution makes memory, which the others find.
            profiler.clear()
            for _ in range(3):
                network.run(self._inputs)
            steps: dict[tuple[str, str], float] = {}
            for event in profiler.events:
                if event.kind is EventKind.LAYER and not event.graph:
                    key = event.layer, event.backend
                    steps[key] = min(steps.get(key, event.duration_us), event.duration_us)
            return self._shared_out(network, steps)
        finally:
            network.close()

    def _shared_out(
        self, network: LoadedNetwork, steps: Mapping[tuple[str, str], float]
    ) -> dict[tuple[int, BackendId], float]:
        """Times of steps as times of the layers that they stand for."""
        layers = {layer.id: layer for layer in self._graph.layers}
        optimized = network.optimized
        shared: dict[tuple[int, BackendId], float] = {}
        if optimized is None:
            return shared
        for executed in optimized.graph.layers:
            backend_id = optimized.backend_of(executed)
            duration = steps.get((executed.name, backend_id))
            ids = [i for i in optimized.origins.get(executed.id, ()) if i in layers]
            if duration is None or not ids:
                continue
            # Above 0, as shares are divided by their sum.
            weights = [self._estimates.layer(layers[i], backend_id) + 1e-3 for i in ids]
            for layer_id, weight in zip(ids, weights, strict=True):
                key = layer_id, backend_id
                shared[key] = shared.get(key, 0.0) + duration * weight / sum(weights)
        return shared

    def _race(self) -> None:
        """Let the trials take turns until time is up; slow ones leave."""
        if not self._trials:
            return
        best = min(trial.turn_s for trial in self._trials.values())
        racing = [t for t in self._trials.values() if t.turn_s <= FAR_SLOWER * best]
        ends = time.perf_counter() + RACE_S
        for number in range(MOST_ROUNDS):
            # A few turns each at least, or a single bad one would decide.
            if number >= 4 and (time.perf_counter() > ends or len(racing) == 1):
                break
            # Another one begins each round, as what runs first meets the caches that others left.
            first = number % len(racing)
            for trial in racing[first:] + racing[:first]:
                trial.run_turn()
            if number % 5 == 4:
                best = min(trial.seconds for trial in racing)
                racing = [trial for trial in racing if trial.seconds <= SLOWER * best]

    def _decision(self) -> PlacementDecision:
        """The fastest, and what all others have taken."""
        ordered = sorted(self._trials.values(), key=lambda trial: trial.seconds)
        limit = SIMPLER * ordered[0].seconds
        near = [trial for trial in ordered if trial.seconds <= limit]
        chosen = min(near, key=lambda t: (len(set(t.candidate.backends.values())), t.seconds))
        lines = [
            trial.candidate.alternative(measured_us=1e6 * trial.seconds, is_chosen=trial is chosen)
            for trial in ordered
        ]
        alternatives = (*lines, *self._failures)
        return PlacementDecision(chosen.candidate.backends, MEASURED, alternatives)


class MeasuredCosts:
    """Layers by their measured times; those that have not run, and crossings, as estimated."""

    def __init__(
        self, times_us: Mapping[tuple[int, BackendId], float], estimates: CostTable
    ) -> None:
        self._times_us = times_us
        self._estimates = estimates

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        """Microseconds of one execution."""
        duration = self._times_us.get((layer.id, backend_id))
        return self._estimates.layer(layer, backend_id) if duration is None else duration

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """As estimated."""
        return self._estimates.crossing(value, source, target)


class CutCosts:
    """The same layers with dearer crossings: parts that are cut may lose fused layers."""

    def __init__(self, table: CostTable, factor: float = 5.0) -> None:
        self._table = table
        self._factor = factor

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        """As in the table."""
        return self._table.layer(layer, backend_id)

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """So many times as much."""
        return self._factor * self._table.crossing(value, source, target)


def sample_inputs(infos: Sequence[TensorInfo]) -> list[Array]:
    """Inputs that a network can be run with, the same each time.

    Notes
    -----
    Real and quantised numbers of all sizes; zeros for integers, which may be indices.
    """
    numbers = np.random.default_rng(0)
    arrays: list[Array] = []
    for info in infos:
        shape, dtype = info.known_shape, info.data_type.dtype
        if dtype.kind == "f":
            arrays.append(numbers.uniform(-1, 1, shape).astype(dtype))
        elif info.data_type in _BYTES:
            size_bytes = info.num_elements * dtype.itemsize
            arrays.append(np.frombuffer(numbers.bytes(size_bytes), dtype).reshape(shape))
        else:
            arrays.append(info.data_type.zeros(shape))
    return arrays


_BYTES = frozenset((DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8, DataType.QSYMM_S16))


def _seconds(call: Callable[[], object]) -> float:
    """Return how long one execution takes: the shortest of three, or of those up to a long one."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
        if times[-1] > 0.5:
            break
    return min(times)


def _assignment(network: LoadedNetwork, candidate: PlacementCandidate) -> dict[int, BackendId]:
    """Return the real assignment of a candidate's layers."""
    optimized = network.optimized
    got = {} if optimized is None else optimized.assignment
    return {layer_id: got.get(layer_id, name) for layer_id, name in candidate.backends.items()}
