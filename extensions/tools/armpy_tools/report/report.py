"""Makes a report of a model: runs it, and puts together what there is to see."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

import armpy
from armpy.core.dataclass import dataclass
from armpy.core.machine import describe_machine
from armpy.core.units import counted, type_name
from armpy.errors import InvalidArgumentError
from armpy.inspect import ModelFacts, describe_model
from armpy_tools.benchmark.machine import MachineLoad, busy_note
from armpy_tools.pages import (
    Cautions,
    Facts,
    Headlines,
    Part,
    Section,
    Table,
    Text,
    TwoLines,
    quantization_text,
    shape_text,
)
from armpy_tools.report.accuracy_parts import (
    ModelErrors,
    accuracy_headline,
    accuracy_parts,
    float_errors,
    measure_accuracy,
)
from armpy_tools.report.graph_part import graph_part
from armpy_tools.report.headlines import (
    few_runs,
    place_headline,
    size_headline,
    speed_headline,
    verdict,
)
from armpy_tools.report.layers import LayerRows
from armpy_tools.report.memory_parts import memory_kinds, memory_parts
from armpy_tools.report.placement_parts import placement_parts
from armpy_tools.report.run_times import RunTimes
from armpy_tools.report.time_parts import kind_stack, loading_parts, time_parts

if TYPE_CHECKING:
    from armpy.execution import TensorSpec
    from armpy.model import Model
    from armpy.ops.operation import Array
    from armpy.plugins.hooks.outline import FileOutline


@dataclass(frozen=True, eq=False)
class ReportSubject:
    """Subject of a report."""

    model: Model  # loaded with profiling
    name: str
    arrays: Mapping[str, Array]  # its inputs
    inputs_text: str = ""  # a description of them
    facts: Sequence[tuple[str, str]] = ()  # what else is known of it
    # Of its file; without one, the layers are those of armpy's network.
    outline: FileOutline | None = None
    file_bytes: int = 0  # size of its file, 0 if there is none
    # The float model that it was quantised from, loaded on CpuRef, and its name.
    float_model: Model | None = None
    float_name: str = ""


def make_report(
    subject: ReportSubject,
    *,
    num_runs: int = 10,
    with_accuracy: bool = True,
    on_progress: Callable[[str], None] = lambda _: None,
) -> list[Section]:
    """Run a model and describe it in the sections of a page.

    Parameters
    ----------
    num_runs : int
        To profile, after one that does not count.
    with_accuracy : bool
        Whether to compare each layer with CpuRef, which takes a while.
    on_progress : callable
        Receives the name of each step before it begins.

    Raises
    ------
    InvalidArgumentError
        If the model was loaded without profiling.
    """
    model = subject.model
    times, busy = _profiled(subject, num_runs, on_progress)
    facts = describe_model(subject.model, subject.outline, file_bytes=subject.file_bytes)
    known = LayerRows(facts)
    known.add_times(times)
    accuracy = _accuracy(subject, known, on_progress) if with_accuracy else None
    on_progress("the page")
    headlines = Headlines(
        [
            speed_headline(times),
            place_headline(model.placement, known.rows, times),
            size_headline(facts, memory_kinds(model)),
            accuracy_headline(accuracy),
        ]
    )
    overview: list[Part] = [
        Text(verdict(times, known), "lead"),
        Cautions([line for line in (busy, few_runs(times.summary)) if line]),
        headlines,
        kind_stack(times, known),
        *_about(subject, facts),
    ]
    return [
        Section("Overview", overview),
        Section("Graph", [graph_part(facts, known.rows)]),
        Section("Placement", placement_parts(model.placement, known.rows, times)),
        Section("Time", time_parts(times, known)),
        Section("Memory", memory_parts(model, known)),
        Section("Accuracy", [] if accuracy is None else accuracy_parts(accuracy, known)),
        Section("Loading", loading_parts(times.summary)),
    ]


def _profiled(
    subject: ReportSubject, num_runs: int, on_progress: Callable[[str], None]
) -> tuple[RunTimes, str]:
    """Run the model: the times, and a note if the machine was busy with something else."""
    model, arrays = subject.model, dict(subject.arrays)
    profiler = model.profiler
    if profiler is None:
        raise InvalidArgumentError(
            "the model was loaded without profiling",
            where=subject.name,
            fix="Load it with a Runtime of RuntimeOptions(profiling=True)",
        )
    on_progress("the first run")
    model.run(arrays)
    profiler.clear()
    load, began_s, own_s = MachineLoad(), time.perf_counter(), time.process_time()
    load.begin()
    for number in range(num_runs):
        on_progress(f"run {number + 1} of {num_runs}")
        model.run(arrays)
    load.end(time.perf_counter() - began_s, time.process_time() - own_s)
    busy = busy_note(load.state)
    if busy:
        busy += " So this page counts every part of a run at its shortest in all runs."
    return RunTimes(profiler.summary(), is_busy=bool(busy)), busy


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _accuracy(
    subject: ReportSubject, known: LayerRows, on_progress: Callable[[str], None]
) -> ModelErrors:
    """Compare with CpuRef, and with the float model if there is one."""
    on_progress("accuracy of each layer against CpuRef")
    errors = measure_accuracy(subject.model, subject.arrays, subject.name, known)
    if subject.float_model is None:
        return errors
    on_progress("accuracy against the float model")
    stats = float_errors(subject.model, subject.arrays, subject.float_model)
    return replace(errors, float_name=subject.float_name, float_errors=stats)


def _about(subject: ReportSubject, facts: ModelFacts) -> list[Part]:
    """The inputs and outputs, the model and the machine."""
    model = subject.model
    tensors = [
        (
            kind,
            spec.name,
            TwoLines(type_name(spec.data_type.name), _quantization_text(spec)),
            shape_text(spec.shape),
        )
        for kind, specs in (("input", model.inputs), ("output", model.outputs))
        for spec in specs
    ]
    layers = counted(len(facts.layers), "layer")
    model_facts = [
        ("model", subject.name),
        *subject.facts,
        ("contents", f"{layers}, {counted(len(facts.operators), 'kind')}"),
        ("inputs of the runs", subject.inputs_text or "passed by the caller"),
        ("machine", describe_machine()),
        ("date", _now()),
        ("armpy", armpy.__version__),
        ("Python, NumPy", f"{platform.python_version()}, {np.__version__}"),
        *_backend_versions(model),
    ]
    return [
        Table("Inputs and outputs", ["", "name", "type", "shape"], tensors),
        Facts(model_facts),
    ]


def _quantization_text(spec: TensorSpec) -> str:
    """Scale and zero point; empty where there is none."""
    quantization = spec.info.quantization
    return (
        ""
        if quantization is None
        else quantization_text(quantization.scales, quantization.zero_points, quantization.axis)
    )


def _backend_versions(model: Model) -> list[tuple[str, str]]:
    """The backends that run layers, with their origins."""
    placement = model.placement
    used = {} if placement is None else placement.layers_by_backend
    candidates = {c.backend_id: c for c in model.runtime.registry.candidates}
    return [
        (f"backend {name}", candidates[name].source if name in candidates else "registered")
        for name, count in used.items()
        if count
    ]
