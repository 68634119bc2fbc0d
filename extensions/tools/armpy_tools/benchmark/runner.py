"""Measures subjects beside each other: they take turns, in fresh processes several times."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from statistics import median

from armpy.core.dataclass import dataclass
from armpy.core.turns import orders
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy_tools.benchmark.bursts import SubjectTurn
from armpy_tools.benchmark.machine import MachineLoad
from armpy_tools.benchmark.process import ISubjectProcess, PreparedSubject, Start, SubjectProcess
from armpy_tools.benchmark.remarks import remarks_on_all, remarks_on_subject
from armpy_tools.benchmark.results import BenchmarkResult, LayerCost, MemoryUse, SubjectResult
from armpy_tools.benchmark.subjects import Plan, Subject, name_subjects
from armpy_tools.measure.latency import latency_of
from armpy_tools.measure.ratio import Ratio, compare

_TURNS = 12
"""Of each subject in a process, about."""

_LEAST_TURNS = 3
_LEAST_TURN_S = 0.005
_PAUSE_S = 0.002
"""Ahead of a turn, in which another subject's threads go to sleep."""

_LAYER_RUNS = 20


@dataclass(frozen=True, slots=True)
class BenchmarkProgress:
    """Progress of a benchmark."""

    done: float  # parts of the work
    total: float
    what: str  # the next action


@dataclass(slots=True)
class _SubjectRecord:
    """Record of a subject so far."""

    name: str
    subject: Subject
    prepared: list[PreparedSubject] = field(default_factory=list)
    turns: list[list[SubjectTurn]] = field(default_factory=list)
    placement: str = ""
    memory: MemoryUse | None = None
    layers: tuple[LayerCost, ...] = ()
    failure: str = ""


def benchmark(
    subjects: Sequence[Subject],
    plan: Plan | None = None,
    *,
    on_progress: Callable[[BenchmarkProgress], object] | None = None,
    start: Start = SubjectProcess,
) -> BenchmarkResult:
    """Measure subjects beside each other.

    Parameters
    ----------
    plan : Plan, optional
        How much; the defaults of `Plan` if left out.
    on_progress : callable, optional
        Receives a `BenchmarkProgress` now and then.
    start : callable, optional
        Begins to measure a subject; in a process of its own if left out.

    Returns
    -------
    BenchmarkResult
        Of a subject that fails, the reason; `KeyboardInterrupt` ends it early, with all that was
        measured until then.

    Raises
    ------
    InvalidArgumentError
        If there is no subject, or no such baseline.

    Notes
    -----
    A process at a time loads and runs once, so that no two disturb each other. Then all subjects
    take short turns: in a random order, and in the opposite order next, so that what changes with
    time falls on all alike. That is done `Plan.processes` times.

    Examples
    --------
    >>> subjects = [Subject("model.tflite", backends=(b,)) for b in ("CpuRef", "NumbaAcc")]
    >>> result = benchmark(subjects)                                # doctest: +SKIP
    >>> result.subjects[1].ratio.value                              # doctest: +SKIP
    31.4
    """
    plan = plan or Plan()
    if not subjects or not 0 <= plan.baseline < len(subjects):
        raise InvalidArgumentError(
            "there is nothing to compare with" if subjects else "there is nothing to measure",
            where="Plan.baseline" if subjects else "subjects",
            expected=f"0 to {len(subjects) - 1}" if subjects else "one subject at least",
            actual=str(plan.baseline) if subjects else "none",
        )
    return _Benchmark(subjects, plan, on_progress, start).run()


class _Benchmark:
    """A benchmark under way."""

    def __init__(
        self,
        subjects: Sequence[Subject],
        plan: Plan,
        on_progress: Callable[[BenchmarkProgress], object] | None,
        start: Start,
    ) -> None:
        names = name_subjects(subjects)
        self._records = [_SubjectRecord(n, s) for n, s in zip(names, subjects, strict=True)]
        self._plan, self._start = plan, start
        self._on_progress = on_progress
        self._random = random.Random(plan.seed)
        self._machine_load = MachineLoad()
        self._finished = 0
        self._processes = min(plan.processes, plan.runs or plan.processes)

    def run(self) -> BenchmarkResult:
        """Measure everything."""
        began = time.perf_counter()
        interrupted = False
        try:
            for number in range(self._processes):
                self._measure_once(number)
                self._finished += 1
            if self._plan.with_layers:
                self._measure_layers()
        except KeyboardInterrupt:
            interrupted = True
        machine = self._machine_load.state
        results = tuple(self._results())
        seconds = time.perf_counter() - began
        notes = remarks_on_all(machine, self._plan, self._finished, interrupted=interrupted)
        return BenchmarkResult(
            self._plan, machine, results, seconds, self._finished, notes, interrupted
        )

    def _measure_once(self, number: int) -> None:
        """Measure every subject in a fresh process."""
        running: dict[int, ISubjectProcess] = {}
        try:
            for index in self._shuffled(range(len(self._records))):
                record = self._records[index]
                if not record.failure:
                    self._report(number, f"loading {record.name}")
                    self._prepare(index, running)
            if running:
                self._take_turns(number, running)
            for index, process in running.items():
                self._guarded(index, partial(self._describe, index, process))
        finally:
            for process in running.values():
                process.close()

    def _prepare(self, index: int, running: dict[int, ISubjectProcess]) -> None:
        """Start a subject's process; it is among the running ones if that goes well."""
        record = self._records[index]
        process = self._start(record.subject)
        running[index] = process
        if not self._guarded(
            index, lambda: record.prepared.append(process.prepare(self._plan.seed))
        ):
            running.pop(index).close()
            return
        if self._guarded(index, lambda: process.run(self._plan.warm_up_s, None, 0)):
            record.turns.append([])
        else:
            running.pop(index).close()

    def _guarded(self, index: int, do: Callable[[], object]) -> bool:
        """Do something with a subject; what goes wrong is its result."""
        try:
            do()
        except ArmpyError as error:
            self._records[index].failure = str(error)
            return False
        return True

    def _describe(self, index: int, process: ISubjectProcess) -> None:
        """Ask a subject for its time and memory; the peak is that of the latest process.

        The first one may have compiled, and compilers are large.
        """
        record = self._records[index]
        if record.memory is None:
            record.placement, record.memory = process.describe(in_full=True)
        else:
            _, memory = process.describe(in_full=False)
            record.memory = replace(record.memory, peak_bytes=memory.peak_bytes)

    def _take_turns(self, number: int, running: dict[int, ISubjectProcess]) -> None:
        """Let subjects take turns until each has had its share of time, or of runs."""
        seconds = self._plan.seconds / self._processes
        turn_s = max(seconds / _TURNS, _LEAST_TURN_S)
        share = _share(self._plan.runs, self._processes, number)
        began, own_s, turns = time.perf_counter(), time.process_time(), 0
        self._machine_load.begin()
        used_s = 0.0
        for order in orders(list(running), self._random):
            runs = (
                None
                if share is None
                else -(-share * (turns + 1) // _TURNS) - (-(-share * turns // _TURNS))
            )
            passed = time.perf_counter() - began
            if share is None:
                is_done = turns >= _LEAST_TURNS and passed >= seconds * len(running)
            else:
                is_done = turns >= _TURNS
            if is_done or not running:
                break
            self._report(number, "measuring", min(passed / max(seconds * len(order), 1e-9), 1.0))
            if runs == 0:
                turns += 1
                continue
            for index in order:
                if index in running:
                    used_s += self._take_turn(index, running, turn_s, runs)
            turns += 1
        wall_s = time.perf_counter() - began
        self._machine_load.end(wall_s, used_s + time.process_time() - own_s)

    def _take_turn(
        self, index: int, running: dict[int, ISubjectProcess], turn_s: float, runs: int | None
    ) -> float:
        """Let one subject take a turn; seconds that it computed."""
        time.sleep(_PAUSE_S)
        bursts: list[SubjectTurn] = []
        record = self._records[index]
        if not self._guarded(
            index, lambda: bursts.append(running[index].run(turn_s, runs, unmeasured=1))
        ):
            running.pop(index).close()
            return 0.0
        record.turns[-1] += bursts
        return bursts[0].processors_s

    def _measure_layers(self) -> None:
        """Find out what limits the layers of each subject."""
        for index, record in enumerate(self._records):
            if record.failure or record.subject.engine != "armpy":
                continue
            self._report(self._processes, f"layers of {record.name}")
            process = self._start(record.subject)
            try:
                if self._guarded(index, partial(process.prepare, self._plan.seed)):
                    self._guarded(index, partial(_note_layers, record, process))
            finally:
                process.close()

    def _shuffled(self, indices: Sequence[int]) -> list[int]:
        """The same in a random order."""
        return self._random.sample(indices, len(indices))

    def _report(self, number: int, action: str, part: float = 0.0) -> None:
        """Report the progress."""
        if self._on_progress is not None:
            self._on_progress(BenchmarkProgress(number + part, self._processes, action))

    def _results(self) -> Iterator[SubjectResult]:
        """Return the findings about each subject."""
        baseline = self._records[self._plan.baseline]
        for record in self._records:
            yield _result(record, None if record is baseline else _ratio(baseline, record))


def _share(runs: int | None, processes: int, number: int) -> int | None:
    """Return how many of some runs a process makes."""
    return None if runs is None else runs * (number + 1) // processes - runs * number // processes


def _note_layers(record: _SubjectRecord, process: ISubjectProcess) -> None:
    """Ask a subject about its layers."""
    record.layers = process.layers(_LAYER_RUNS)


def _ratio(baseline: _SubjectRecord, record: _SubjectRecord) -> Ratio | None:
    """Return how many times as fast a subject is as another, by item."""
    if record.failure or not (any(baseline.turns) and any(record.turns)):
        return None
    is_single = baseline.subject.callers == record.subject.callers == 1
    return compare(_times(baseline, is_single), _times(record, is_single))


def _times(record: _SubjectRecord, is_single: bool) -> list[list[float]]:
    """Seconds per item of every turn.

    Between single callers it is the turn's median; else what all have done together counts.
    """
    items = record.prepared[-1].items
    return [[_seconds(burst, is_single) / items for burst in turns] for turns in record.turns]


def _seconds(burst: SubjectTurn, is_single: bool) -> float:
    """Return the seconds of a turn's run."""
    return median(burst.durations_us) / 1e6 if is_single else burst.wall_s / burst.runs


def _result(record: _SubjectRecord, ratio: Ratio | None) -> SubjectResult:
    """Return the findings about a subject."""
    bursts = [burst for turns in record.turns for burst in turns]
    durations = [us for burst in bursts for us in burst.durations_us]
    wall_s = sum(burst.wall_s for burst in bursts)
    items = record.prepared[-1].items if record.prepared else 1
    latency = latency_of(durations) if durations else None
    load_ms = tuple(1000 * p.load_s for p in record.prepared)
    return SubjectResult(
        record.name,
        record.subject,
        items,
        record.placement,
        load_ms,
        tuple(1000 * p.first_s for p in record.prepared),
        latency,
        items * len(durations) / wall_s if wall_s else 0.0,
        sum(burst.processors_s for burst in bursts) / wall_s if wall_s else 0.0,
        record.memory,
        ratio,
        tuple(
            tuple(latency_of(burst.durations_us).median_ms for burst in turns)
            for turns in record.turns
        ),
        record.layers,
        remarks_on_subject(record.subject, latency, load_ms),
        record.failure,
    )
