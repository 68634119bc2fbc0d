"""Measures backends on reference workloads, and keeps what comes out."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

from armpy.backend import DeviceFigures, Progress, report_progress
from armpy.compiler.devices import FigureSource, declared_figures
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import mark_choices
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.execution import LoadedNetwork, Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy, BackendRegistry, preferred_backends
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DataType
from armpy_tools.calibrate.clocks import Clock, measure
from armpy_tools.calibrate.copies import Copies, measure_copies
from armpy_tools.calibrate.figures import RELAXED, RELAXED_SCALAR, SCALAR, figures_from
from armpy_tools.calibrate.fitting import fit_rates
from armpy_tools.calibrate.user_models import ModelTime, UserModel, read_user_models
from armpy_tools.calibrate.workloads import (
    CalibrationWorkload,
    chain,
    random_inputs,
    reference_workloads,
    scalar_workloads,
)
from armpy_tools.devices.costs import BackendCosts, CopyRate
from armpy_tools.devices.records import DeviceRecord, Sample
from armpy_tools.devices.store import FiguresStore

DEFAULT_SECONDS = 20.0
"""How long one backend is measured at most."""

PREPARATION = 3.0
"""How many times as long all of it may take, with the compilations for it."""

FAST_MATH_OPTION = "fast_math_enabled"
"""Model option with which a backend may compute float32 as if it were float16."""

_SAMPLE_S = 0.03
_LONGEST_RUN_S, _SHORTEST_WAIT_S = 5.0, 0.1
_CHAIN = 9
OUT_OF_TIME = "no time was left"
"""Why a workload was left out that there was no time for."""

_log = logging.getLogger("armpy_tools.calibrate")


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Report of measuring one backend."""

    backend: BackendId
    version: str = ""
    # Those that count from now on: the declared ones if `is_declared`.
    figures: DeviceFigures | None = None
    costs: BackendCosts | None = None
    num_measured: int = 0  # workloads, relaxed and scalar ones included
    # Why a workload was not measured, by its name.
    left_out: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # how long it took
    is_declared: bool = False  # whether the backend declares figures, which go before measured ones
    is_kept: bool = False  # whether it could be written down
    problem: str = ""  # why nothing was measured; empty if something was
    models: tuple[ModelTime, ...] = ()  # of the user's models


def calibrate(
    registry: BackendRegistry,
    backend_ids: Sequence[BackendId] | None = None,
    *,
    store: FiguresStore | None = None,
    seconds: float = DEFAULT_SECONDS,
    clock: Clock | None = None,
    models: Iterable[str | os.PathLike[str]] = (),
) -> list[CalibrationReport]:
    """Measure backends on this machine and keep their figures.

    Parameters
    ----------
    backend_ids : sequence of str, optional
        Every backend that can be used if left out. CpuRef is measured besides if it has not been
        yet, as the others are set against it.
    store : FiguresStore, optional
        This machine's if left out.
    seconds : float
        How long each backend is measured at most. Compilations for it come on top, up
        to twice as long, and so do models.
    clock : Clock, optional
        The system's if left out.
    models : iterable of path
        Models that are measured before the reference workloads, with random inputs, and count in
        the figures as one workload each. CpuRef is measured besides if it has not run them.

    Returns
    -------
    list of CalibrationReport
        CpuRef first. A backend that fails has its problem there; nothing is raised for it.

    Raises
    ------
    BackendUnavailableError
        If a backend that is named cannot be used.
    ParserError, OSError
        If a model cannot be read.

    Notes
    -----
    What a backend does not support is left out. Models that were kept are prepared anew.
    `armpy.backend.watch_progress` hears of every workload. Nothing else should run meanwhile.
    """
    store, clock = store or FiguresStore(), clock or Clock()
    wanted = [backend.get_id() for backend in preferred_backends(registry, backend_ids)]
    reference = _reference_samples(registry, store)
    user_models = read_user_models(models, registry)
    is_measured = reference is not None and all(m.name in reference for m in user_models)
    if REFERENCE_BACKEND_ID not in wanted and not is_measured:
        wanted.append(REFERENCE_BACKEND_ID)
    wanted.sort(key=lambda backend_id: backend_id != REFERENCE_BACKEND_ID)
    reports = []
    for backend_id in wanted:
        session = partial(_Session, clock=clock, seconds=seconds, models=user_models)
        report, samples = _calibrated(registry, backend_id, store, session, reference or {})
        if backend_id == REFERENCE_BACKEND_ID and samples:
            reference = samples
        reports.append(report)
    mark_choices()
    return reports


def _reference_samples(
    registry: BackendRegistry, store: FiguresStore
) -> Mapping[str, Sample] | None:
    """Return earlier measurements of CpuRef; None if there are none."""
    try:
        version = BackendProxy(registry.get(REFERENCE_BACKEND_ID)).version
    except ArmpyError as error:
        _log.warning("nothing can be set against %s: %s", REFERENCE_BACKEND_ID, error)
        return {}
    record = store.read(REFERENCE_BACKEND_ID, version)
    return record.samples if record else None


def _calibrated(
    registry: BackendRegistry,
    backend_id: BackendId,
    store: FiguresStore,
    make_session: Callable[[BackendRegistry, BackendProxy], _Session],
    reference: Mapping[str, Sample],
) -> tuple[CalibrationReport, Mapping[str, Sample]]:
    """Measure one backend, keep the outcome, and say what became of it."""
    try:
        backend = BackendProxy(registry.get(backend_id))
        session = make_session(registry, backend)
        session.run()
        if not session.samples:
            reasons = dict.fromkeys(session.left_out.values())
            problem = f"nothing could be measured: {'; '.join([*reasons][:3])}"
            left_out = dict(session.left_out)
            return CalibrationReport(
                backend_id, backend.version, left_out=left_out, problem=problem
            ), {}
        costs = session.costs()
    except ArmpyError as error:
        return CalibrationReport(backend_id, problem=str(error)), {}
    samples = session.named_samples()
    against = samples if backend_id == REFERENCE_BACKEND_ID else reference
    figures = figures_from(samples, against)
    record = DeviceRecord(backend_id, backend.version, figures, costs, time.time(), samples)
    declared = None if against is samples else declared_figures(backend)
    report = CalibrationReport(
        backend_id,
        backend.version,
        declared or figures,
        costs,
        len(samples),
        dict(session.left_out),
        session.elapsed_s,
        declared is not None,
        store.write(record),
        models=session.model_times(against),
    )
    return report, samples


class _Session:
    """One backend while it is measured."""

    def __init__(
        self,
        registry: BackendRegistry,
        backend: BackendProxy,
        clock: Clock,
        seconds: float,
        models: Sequence[UserModel] = (),
    ) -> None:
        self._begin_s = clock.now()
        self._models = models
        self._registry = registry
        self._backend = backend
        self._clock = clock
        self._left_s = seconds
        self._end_s = clock.now() + seconds * PREPARATION
        self.samples: dict[CalibrationWorkload, Sample] = {}
        self.left_out: dict[str, str] = {}
        self._others: dict[str, Sample] = {}
        self._copies = Copies(CopyRate(), CopyRate(), shares_host_memory=True)
        self._part_s = 0.0

    def run(self) -> None:
        """Measure everything that there is time for."""
        has_fast_math = any(option.name == FAST_MATH_OPTION for option in self._backend.options)
        workloads = [*reference_workloads()]
        scalars = [*scalar_workloads()]
        relaxed = [w for w in workloads if has_fast_math and _is_large_float(w)]
        relaxed_scalars = [w for w in scalars if has_fast_math and w.data_type is DataType.FLOAT32]
        num_relaxed = len(relaxed) + len(relaxed_scalars)
        num_plain = len(self._models) + len(workloads) + len(scalars)
        steps = _Steps(self._backend.get_id(), num_plain + num_relaxed + 1)
        with self._runtime({}) as runtime:
            steps.next()
            self._measure_frame(runtime)
            for model in self._models:
                steps.next()
                self._measure_model(runtime, model)
            for workload in scalars:
                steps.next()
                self._keep_other(runtime, SCALAR + workload.name, workload.graph)
            for workload in workloads:
                steps.next()
                sample = self._sample(runtime, workload.name, workload.graph)
                if sample is not None:
                    self.samples[workload] = sample
        if num_relaxed:
            with self._runtime({FAST_MATH_OPTION: True}) as runtime:
                for workload in relaxed_scalars:
                    steps.next()
                    self._keep_other(runtime, RELAXED_SCALAR + workload.name, workload.graph)
                for workload in relaxed:
                    steps.next()
                    self._keep_other(runtime, RELAXED + workload.name, workload.graph)
        steps.end()

    def costs(self) -> BackendCosts:
        """The cost model of the measurements."""
        host = {w: self._without_copies(w.graph, s) for w, s in self.samples.items()}
        return BackendCosts(
            self._backend.get_id(),
            FigureSource.MEASURED,
            fit_rates(host, self._part_s),
            self._part_s,
            self._copies.into,
            self._copies.out,
            self._copies.shares_host_memory,
        )

    def named_samples(self) -> dict[str, Sample]:
        """Everything that was measured, by name."""
        named = {workload.name: sample for workload, sample in self.samples.items()}
        return {**named, **self._others}

    def model_times(self, reference: Mapping[str, Sample]) -> tuple[ModelTime, ...]:
        """Times of the user's models that could be measured, beside CpuRef's."""
        times = []
        for model in self._models:
            if (sample := self._others.get(model.name)) is not None:
                other = reference.get(model.name)
                seconds = None if other is None else other.seconds
                times.append(ModelTime(model.title, sample.seconds, seconds))
        return tuple(times)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made."""
        return self._clock.now() - self._begin_s

    def _runtime(self, options: Mapping[str, object]) -> Runtime:
        """A runtime that has this backend alone."""
        backend_id = self._backend.get_id()
        chosen = {backend_id: options} if options else {}
        return Runtime(
            RuntimeOptions([backend_id], registry=self._registry, backend_options=chosen)
        )

    def _measure_frame(self, runtime: Runtime) -> None:
        """Measure the costs around layers: copies, and a part's overhead."""
        try:
            self._copies = measure_copies(self._backend, self._clock)
        except ArmpyError as error:
            self.left_out["copies"] = str(error)
        single = self._sample(runtime, "one addition", chain(1))
        many = self._sample(runtime, f"{_CHAIN} additions", chain(_CHAIN))
        if single is not None and many is not None:
            layer_s = max(many.seconds - single.seconds, 0.0) / (_CHAIN - 1)
            whole = self._without_copies(chain(1), single).seconds
            self._part_s = max(whole - layer_s, 0.0)

    def _measure_model(self, runtime: Runtime, model: UserModel) -> None:
        """Measure a model, which takes no time of the workloads'."""
        begin_s, left_s = self._clock.now(), self._left_s
        self._keep_other(runtime, model.name, model.graph, model.inputs)
        self._left_s = left_s
        self._end_s += self._clock.now() - begin_s

    def _keep_other(
        self, runtime: Runtime, name: str, graph: Graph, inputs: Sequence[Array] | None = None
    ) -> None:
        """Measure costs that are in the figures, but not in the cost model."""
        sample = self._sample(runtime, name, graph, inputs)
        if sample is not None:
            self._others[name] = sample

    def _without_copies(self, graph: Graph, sample: Sample) -> Sample:
        """Return a time without copying the inputs in and the outputs out."""
        if self._copies.shares_host_memory:
            return sample
        copied = sum(self._copies.into.seconds(v.info.size_bytes) for v in graph.inputs)
        copied += sum(self._copies.out.seconds(v.info.size_bytes) for v in graph.outputs)
        return Sample(max(sample.seconds - copied, 0.0), sample.power)

    def _sample(
        self, runtime: Runtime, name: str, graph: Graph, inputs: Sequence[Array] | None = None
    ) -> Sample | None:
        """Measure one network; None if there is no time left or the backend cannot run it."""
        if self._left_s <= 0 or self._clock.now() >= self._end_s:
            self.left_out[name] = OUT_OF_TIME
            return None
        network_id = None
        try:
            network_id = runtime.load_network(graph)
            return self._measured(runtime.get_network(network_id), inputs or random_inputs(graph))
        except BackendCapabilityError as error:
            self.left_out[name] = str(error)
        except ArmpyError as error:
            _log.warning("%s is not measured: %s", name, error)
            self.left_out[name] = str(error)
        finally:
            if network_id is not None:
                runtime.unload_network(network_id)
        return None

    def _measured(self, network: LoadedNetwork, inputs: Sequence[Array]) -> Sample:
        """Measure a network, and subtract the time from the rest."""
        begin = self._clock.now()
        # A backend that hangs is not waited for.
        deadline_s = max(min(self._end_s - begin, _LONGEST_RUN_S), _SHORTEST_WAIT_S)
        outputs = network.run(inputs, deadline_s=deadline_s)
        sample = measure(lambda: network.run(inputs, outputs), self._clock, seconds=_SAMPLE_S)
        self._left_s -= self._clock.now() - begin
        return sample


def _is_large_float(workload: CalibrationWorkload) -> bool:
    """Return whether computing less exactly may be worth something."""
    return workload.data_type is DataType.FLOAT32 and workload.size == 1


class _Steps:
    """Reports the progress."""

    def __init__(self, backend_id: BackendId, total: int) -> None:
        self._backend_id = backend_id
        self._total = total
        self._done = 0

    def next(self) -> None:
        """One more is begun."""
        self._report(self._done)
        self._done += 1

    def end(self) -> None:
        """All are done."""
        self._report(self._total)

    def _report(self, done: int) -> None:
        """Report the number of finished steps."""
        report_progress(Progress(self._backend_id, "measuring", done, self._total))
