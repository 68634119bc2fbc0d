"""Rules about what surrounds a call: deadlines, priorities, precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from armpy.compiler import OptimizerOptions
from armpy.execution import NetworkProperties
from armpy.execution.arrays.conversion import as_stored
from armpy.graph import Graph
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.types import DataType, Priority
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import ViolationError
from armpy_conformance.contract.networks import Bench, sample_bench, samples

_DEADLINE_S = 60.0

_RELAXED = 2.0**-6
"""Of the largest element: the error of float16 in sums of some dozens of terms."""


def calls_with_every_request_are_alike(subject: BackendUnderTest) -> None:
    """With and without a deadline, of every priority, bound or not, the answers are the same."""
    for case in samples(subject):
        trial = sample_bench(subject, case)
        model = Model(trial.graph, subject.runtime)
        for when, outputs in _answers(model, trial):
            trial.check(outputs, when)
        subject.runtime.unload_network(model.network_id)


def _answers(model: Model, trial: Bench) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Answers to calls of every kind, each with what the call asked for."""

    def feeds() -> dict[str, Array]:
        return {name: array.copy() for name, array in trial.feeds.items()}

    for deadline_s in (None, _DEADLINE_S):
        limit = "without a deadline" if deadline_s is None else "with a deadline"
        yield f"called {limit}", _stored(model.run(feeds(), deadline_s=deadline_s))
        for priority in Priority:
            of = f"{limit} and of priority {priority.name}"
            future = model.start(feeds(), priority=priority, deadline_s=deadline_s)
            yield f"started {of}", _stored(future.result(_DEADLINE_S))
        outputs = {name: np.zeros_like(array) for name, array in trial.expected.items()}
        execution = model.bind(feeds(), outputs, deadline_s=deadline_s)
        for turn in ("bound", "bound and called again"):
            for array in outputs.values():
                array[...] = np.zeros((), array.dtype)
            execution()
            yield f"{turn} {limit}", outputs


def _stored(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs without the types of ``ml_dtypes``, which a model gives where it is installed."""
    return {name: as_stored(array) for name, array in outputs.items()}


def networks_of_every_priority_are_alike(subject: BackendUnderTest) -> None:
    """Networks that are prepared with each priority, with a deadline or none, compute the same."""
    for case in samples(subject):
        trial = sample_bench(subject, case)
        for priority in Priority:
            options = OptimizerOptions(priority=priority)
            network_id = _loaded(subject, trial.graph, options)
            trial.run(subject.runtime, network_id, f"prepared with priority {priority.name}")
            subject.runtime.unload_network(network_id)


def relaxed_answers_are_as_good_as_float16(subject: BackendUnderTest) -> None:
    """With relaxed precision float32 is as exact as float16 at least, and other types as before."""
    for case in samples(subject):
        trial = sample_bench(subject, case)
        for is_relaxed in (True, False, True):
            network_id = _loaded(subject, trial.graph, OptimizerOptions(relaxed=is_relaxed))
            feeds = {name: array.copy() for name, array in trial.feeds.items()}
            outputs = subject.runtime.enqueue_workload(network_id, feeds)
            subject.runtime.unload_network(network_id)
            if is_relaxed:
                _check_relaxed(trial, outputs)
            else:
                trial.check(outputs, "beside a network of relaxed precision")


def _loaded(subject: BackendUnderTest, graph: Graph, options: OptimizerOptions) -> int:
    """The id of a network that was prepared with some options."""
    return subject.runtime.load_network(graph, NetworkProperties(optimizer=options))


def _check_relaxed(trial: Bench, outputs: Mapping[str, Array]) -> None:
    """Check answers of float32 that may have been computed as float16."""
    infos = dict(zip(trial.graph.output_names, trial.graph.outputs, strict=True))
    for name, wanted in trial.expected.items():
        if infos[name].info.data_type is not DataType.FLOAT32:
            trial.check({**trial.expected, name: outputs[name]}, "with relaxed precision")
            continue
        limit = _RELAXED * float(np.abs(wanted).max(initial=1.0))
        away = float(np.abs(wanted.astype(np.float64) - outputs[name]).max(initial=0.0))
        if not away <= limit:
            raise ViolationError(
                f"with relaxed precision, the output '{name}' of {trial.operations} is further "
                f"away than float16 is. Expected at most {limit:.3g}; got {away:.3g}"
            )
