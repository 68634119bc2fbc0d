"""Runs models on a backend, on CpuRef, on their float twins and on a peer."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import numpy as np

from armpy import load
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.core.turns import take_turns, timed
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    InvalidArgumentError,
    UnimplementedError,
    UnsupportedOperatorError,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.model import InputShapes, Model, input_shapes
from armpy.ops.operation import Array, located
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.comparison.real_numbers import real_numbers
from armpy_conformance.workers import LostItem, judge_in_workers
from armpy_tools.accuracy.accuracy_run import AccuracyRun
from armpy_tools.accuracy.engines import PEER, Engine, engine_of_model, peer_engine
from armpy_tools.accuracy.expected_results import ExpectedResults, read_expected
from armpy_tools.accuracy.float_twin import float_twin, real_info
from armpy_tools.accuracy.report import EngineReport, ModelAccuracy, Status
from armpy_tools.accuracy.verdict import Verdict, verdict
from armpy_tools.comparison.errors import errors
from armpy_tools.comparison.sides import chosen_inputs, input_arrays
from armpy_tools.measure.latency import latency_of

REAL_NUMBERS = "real numbers"

RANDOM_SAMPLES = 8
"""Inputs of a model without a file of samples, where no number is given."""

Progress = Callable[[ModelAccuracy], None]
"""Receives the result of each model."""


@dataclass(frozen=True, slots=True)
class AccuracySettings:
    """Settings of an accuracy run."""

    num_samples: int | None = None
    """Inputs of each model; if left out, all of its file, or `RANDOM_SAMPLES`."""
    seed: int = 0  # of inputs made of chance
    inputs: str = ""
    """A directory with ``<model>.npz`` for models that have inputs of their own, and expected
    results; that of each model if empty.
    """
    seconds: float = 2.0  # how long each model is timed
    num_threads: int = 1  # of the backend and the peer
    tolerance: float = 1.25
    """Largest ratio of the backend's error to the smaller one of CpuRef and the peer."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes of inputs that the models leave open, by name, as of `first_difference`."""


def run_accuracy(
    models: Sequence[str | os.PathLike[str]],
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    settings: AccuracySettings | None = None,
    timeout_s: float = 600.0,
    progress: Progress | None = None,
) -> AccuracyRun:
    """Measure latency and accuracy of a backend on models, each in a process of its own.

    Parameters
    ----------
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options; `backends` and `registry` do not count.
    timeout_s : float
        How long one model may take.
    progress : callable, optional
        Is given each `ModelAccuracy` as it comes.

    Raises
    ------
    InvalidArgumentError
        If there are no models.

    References
    ----------
    Android's MLTS benchmark.
    """
    settings = settings or AccuracySettings()
    if not models:
        raise InvalidArgumentError("there are no models", where="models")
    options = replace(
        runtime_options or RuntimeOptions(),
        registry=None,
        backends=None,
        num_threads=settings.num_threads,
    )
    started = time.perf_counter()
    paths = [os.fspath(model) for model in models]
    make_judge = partial(ModelJudge, backend_id, options, settings)
    reports = []
    for path in paths:  # one at a time, as they are timed, and each in a process of its own
        (judged,) = judge_in_workers(
            [[path]], make_judge, ModelAccuracy, jobs=1, timeout_s=timeout_s
        )
        report = (
            ModelAccuracy(path, Status.CRASHED, judged.reason)
            if isinstance(judged, LostItem)
            else judged
        )
        reports.append(report)
        if progress is not None:
            progress(report)
    return AccuracyRun(
        backend_id,
        tuple(reports),
        _machine(),
        {name: str(getattr(settings, name)) for name in AccuracySettings.__slots__},
        time.perf_counter() - started,
    )


def _machine() -> dict[str, str]:
    """Return the machine that the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {
        "processor": cpu,
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


class ModelJudge:
    """Runs one model on everything."""

    def __init__(
        self, backend_id: BackendId, options: RuntimeOptions, settings: AccuracySettings
    ) -> None:
        self._backend_id = backend_id
        self._settings = settings
        ids = list(dict.fromkeys([backend_id, REFERENCE_BACKEND_ID]))
        self._runtime = Runtime(replace(options, backends=ids))
        self._reference = Runtime(
            replace(options, backends=[REFERENCE_BACKEND_ID], backend_options={})
        )

    def __call__(self, path: str) -> ModelAccuracy:
        """Judge one model; errors of anybody are in the report."""
        try:
            return self._judge(path)
        except (UnsupportedOperatorError, UnimplementedError, BackendCapabilityError) as error:
            return ModelAccuracy(path, Status.UNSUPPORTED, str(error))
        except Exception as error:  # noqa: BLE001 - the report says it
            return ModelAccuracy(path, Status.FAILED, f"{type(error).__name__}: {error}")

    def _judge(self, path: str) -> ModelAccuracy:
        """Run a model on everything and compare."""
        with load(path, runtime=self._reference) as plain:
            file = self._sample_file(Path(path))
            samples, shapes = self._samples(file, plain)
            expected = ExpectedResults() if file is None else read_expected(file)
            with shapes.explained():
                exact, reference = self._exact(plain, samples)
            infos = [value.info for value in plain.graph.outputs]
            names = [value.name for value in plain.graph.inputs]
            engines = [engine_of_model(REFERENCE_BACKEND_ID, self._version(False), plain)]
            reports: dict[str, EngineReport] = {}
            with load(path, runtime=self._runtime) as model:
                placement = None
                if self._backend_id != REFERENCE_BACKEND_ID:
                    engine = engine_of_model(self._backend_id, self._version(True), model)
                    engines.insert(0, engine)
                try:
                    engines.append(peer_engine(Path(path), names, self._settings.num_threads))
                except Exception as error:  # noqa: BLE001 - a peer's errors are its own
                    reports[PEER] = EngineReport(PEER, text=str(error))
                answers = {engine.name: self._answers(engine, samples) for engine in engines}
                placement = model.placement
                for engine in engines:
                    report = _report(engine, answers[engine.name], exact, infos, expected)
                    reports[engine.name] = report
                self._time(engines, samples, reports)
        by_backend = {} if placement is None else placement.layers_by_backend
        num_layers, num_taken = sum(by_backend.values()), by_backend.get(self._backend_id, 0)
        if num_taken:
            judged = verdict(self._backend_id, reports, self._settings.tolerance)
        else:
            judged = Verdict(Status.UNSUPPORTED, f"{self._backend_id} runs no layer of it")
        order = dict.fromkeys([self._backend_id, REFERENCE_BACKEND_ID, PEER])
        shown = tuple(reports[name] for name in order if name in reports)
        return ModelAccuracy(
            path,
            judged.status,
            judged.text,
            reference,
            num_layers,
            num_taken,
            shown,
            len(samples),
            judged.compared,
        )

    def _version(self, is_tried: bool) -> str:
        """The version of the backend or of CpuRef."""
        runtime = self._runtime if is_tried else self._reference
        backend_id = self._backend_id if is_tried else REFERENCE_BACKEND_ID
        return runtime.registry.get(backend_id).version

    def _sample_file(self, path: Path) -> Path | None:
        """File with the samples of a model; None where there is none."""
        inputs = self._settings.inputs
        file = (Path(inputs) if inputs else path.parent) / f"{path.stem}.npz"
        return file if file.exists() else None

    def _samples(
        self, file: Path | None, model: Model
    ) -> tuple[list[dict[str, Array]], InputShapes]:
        """Inputs by name: those of a file, or random ones; and the shapes of random ones."""
        names = [value.name for value in model.graph.inputs]
        number = self._settings.num_samples
        if file is not None:
            samples = [
                dict(zip(names, self._inputs(file, i, model, sample), strict=True))
                for i, sample in enumerate(samples_of(file, names, number))
            ]
            return samples, InputShapes()
        first = self._settings.seed
        seeds = range(first, first + (RANDOM_SAMPLES if number is None else number))
        shapes = input_shapes(model, self._settings.shapes)
        samples = [
            dict(zip(names, input_arrays(model.graph, {}, seed, shapes.by_name), strict=True))
            for seed in seeds
        ]
        return samples, shapes

    def _inputs(
        self, file: Path, index: int, model: Model, sample: Mapping[str, Array]
    ) -> list[Array]:
        """Inputs of one sample as the model stores them: real numbers are quantised."""
        try:
            return chosen_inputs(model, sample, self._settings.seed, self._settings.shapes)[0]
        except ArmpyError as error:
            raise located(lambda: f"{file}, sample {index}", error) from None

    def _exact(
        self, model: Model, samples: Sequence[Mapping[str, Array]]
    ) -> tuple[list[list[Array]], str]:
        """The real numbers of each sample's outputs, and where they come from."""
        graph = model.graph
        try:
            return [self._of_twin(graph, sample) for sample in samples], REAL_NUMBERS
        except ArmpyError as error:
            infos = [value.info for value in graph.outputs]
            model.reset_state()
            outputs = [list(model.run(dict(sample)).values()) for sample in samples]
            reals = [_real(sample_outputs, infos) for sample_outputs in outputs]
            return reals, f"{REFERENCE_BACKEND_ID}, as there is no float twin: {error}"

    def _of_twin(self, graph: Graph, sample: Mapping[str, Array]) -> list[Array]:
        """Return the float twin's outputs for a sample."""
        twin = float_twin(specialize(graph, [array.shape for array in sample.values()]))
        feeds = {
            value.name: real_numbers(sample[value.name], value.info).astype(
                real_info(value.info).data_type.dtype
            )
            for value in graph.inputs
        }
        with Model(twin, self._reference) as model:
            return list(model.run(feeds).values())

    def _answers(
        self, engine: Engine, samples: Sequence[Mapping[str, Array]]
    ) -> list[Sequence[Array]] | str:
        """An engine's outputs of each sample; a peer's error in words."""
        try:
            engine.reset()
            return [engine.run(sample) for sample in samples]
        except Exception as error:
            if engine.name == PEER:
                return f"{type(error).__name__}: {error}"
            raise

    def _time(
        self,
        engines: Sequence[Engine],
        samples: Sequence[Mapping[str, Array]],
        reports: dict[str, EngineReport],
    ) -> None:
        """Time the backend and the peer in turns; CpuRef is not made to be fast."""
        turns = {
            engine.name: timed(partial(engine.run, samples[0]))
            for engine in engines
            if reports[engine.name].errors is not None
            and (engine.name != REFERENCE_BACKEND_ID or self._backend_id == engine.name)
        }
        if self._settings.seconds > 0:
            for name, times in take_turns(turns, self._settings.seconds).items():
                latency = latency_of([1e6 * seconds for seconds in times])
                times_ms = tuple(1e3 * seconds for seconds in times)
                reports[name] = replace(reports[name], latency=latency, times_ms=times_ms)


def _real(outputs: Sequence[Array], infos: Sequence[object]) -> list[Array]:
    return [real_numbers(o, info) for o, info in zip(outputs, infos, strict=True)]  # type: ignore[arg-type]


def _report(
    engine: Engine,
    answers: list[Sequence[Array]] | str,
    exact: Sequence[Sequence[Array]],
    infos: Sequence[object],
    expected: ExpectedResults,
) -> EngineReport:
    """Return how far an engine is from the real numbers, and from what a file expects."""
    if isinstance(answers, str):
        return EngineReport(engine.name, engine.version, text=answers)
    right = [array for outputs in exact for array in outputs]
    reals = [_real(outputs, infos) for outputs in answers]
    answers_in_order = [array for outputs in reals for array in outputs]
    scores = expected.scores(reals)
    by_sample = tuple(
        errors(outputs, answer).relative for outputs, answer in zip(exact, reals, strict=True)
    )
    return EngineReport(
        engine.name, engine.version, errors(right, answers_in_order), by_sample, scores=scores
    )


def samples_of(path: Path, names: Sequence[str], most: int | None = None) -> list[dict[str, Array]]:
    """Inputs that a file has for a model.

    Parameters
    ----------
    path : Path
        An ``.npz`` file: an array per input by its name, or several samples as ``<sample>/in0``,
        ``<sample>/in1`` in the order of the model's inputs.
    most : int, optional
        How many samples are taken; all if left out.

    Raises
    ------
    InvalidArgumentError
        If an input is missing.
    """
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    samples = list(dict.fromkeys(key.rpartition("/")[0] for key in arrays if "/in" in key))
    samples_read = [
        {name: arrays.get(f"{sample}/in{i}") for i, name in enumerate(names)}
        for sample in samples[:most]
    ] or [{name: arrays.get(name) for name in names}]
    for arrays_by_name in samples_read:
        missing = [name for name, array in arrays_by_name.items() if array is None]
        if missing:
            raise InvalidArgumentError(
                "the file has no elements for an input",
                where=str(path),
                actual=", ".join(missing),
                fix="Add '<sample>/in0', '<sample>/in1' and so on for each sample, in the order of "
                "the model's inputs, or one array by the name of each input",
            )
    return [
        {k: v for k, v in arrays_by_name.items() if v is not None}
        for arrays_by_name in samples_read
    ]
