"""Makes a report of a model: runs it, and puts together what there is to see."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

import armpy
from armpy.compiler.machine import describe_machine
from armpy.core.units import bytes_text, count_text, time_text
from armpy.errors import InvalidArgumentError
from armpy.inspect import ModelFacts, describe_model
from armpy.tensor import format_shape
from armpy_tools.pages import Facts, Part, Section, Text
from armpy_tools.report.accuracy_parts import accuracy_parts
from armpy_tools.report.comparison import compare_backends, comparison_parts
from armpy_tools.report.graph_part import graph_part
from armpy_tools.report.layers import LayerRows
from armpy_tools.report.memory_parts import memory_parts
from armpy_tools.report.placement_parts import placement_parts
from armpy_tools.report.time_parts import loading_parts, time_parts

if TYPE_CHECKING:
    from armpy.model import Model
    from armpy.ops.operation import Array
    from armpy.plugins.hooks.outline import FileOutline
    from armpy.profiling import Summary


@dataclass(frozen=True, eq=False)
class ReportSubject:
    """Subject of a report."""

    model: Model  # loaded with profiling
    name: str
    arrays: Mapping[str, Array]  # its inputs
    inputs_text: str = ""  # what they are
    facts: Sequence[tuple[str, str]] = ()  # what else is known of it
    # Of its file; without one, the layers are those of armpy's network.
    outline: FileOutline | None = None
    file_bytes: int = 0  # size of its file, 0 if there is none
    # Loads it without profiling for a backend as the first choice; for comparisons.
    load: Callable[[str], Model] | None = None


def report_sections(
    subject: ReportSubject,
    *,
    num_runs: int = 10,
    backends: Sequence[str] = (),
    with_accuracy: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Section]:
    """Run a model and describe it.

    Parameters
    ----------
    num_runs : int
        To profile, after one that does not count.
    backends : sequence of str
        First choices to compare with each other.
    with_accuracy : bool
        Whether to compare each layer with CpuRef, which takes a while.
    tell : callable
        Is told what is done next.

    Raises
    ------
    InvalidArgumentError
        If the model was loaded without profiling, or backends are to be compared and nothing loads
        the model for them.
    """
    if backends and subject.load is None:
        raise InvalidArgumentError(
            "backends cannot be compared",
            where=subject.name,
            expected="a ReportSubject with `load`, which loads the model for a backend",
        )
    model = subject.model
    profiler = model.profiler
    if profiler is None:
        raise InvalidArgumentError(
            "the model was loaded without profiling",
            where=subject.name,
            fix="Load it with a Runtime of RuntimeOptions(profiling=True)",
        )
    tell("the first run")
    arrays = dict(subject.arrays)
    model.run(arrays)
    profiler.clear()
    for number in range(num_runs):
        tell(f"run {number + 1} of {num_runs}")
        model.run(arrays)
    summary = profiler.summary()
    facts = describe_model(model, subject.outline, file_bytes=subject.file_bytes)
    known = LayerRows(facts)
    known.add_times(summary)
    accuracy: list[Part] = []
    if with_accuracy:
        tell("accuracy of each layer against CpuRef")
        accuracy = accuracy_parts(model, subject.arrays, subject.name, known)
    comparison: list[Part] = []
    if backends and subject.load is not None:
        tell(f"{len(backends)} backends in turns")
        comparison = comparison_parts(
            compare_backends(subject.load, backends, subject.arrays, num_runs)
        )
    tell("the page")
    return [
        Section("Overview", _overview(subject, facts, summary)),
        Section("Graph", [graph_part(facts, known.rows)]),
        Section("Placement", placement_parts(model.placement, known.rows)),
        Section("Time", time_parts(profiler, summary, known)),
        Section("Memory", memory_parts(model, known.rows)),
        Section("Backends compared", comparison),
        Section("Accuracy", accuracy),
        Section("Loading", loading_parts(summary)),
    ]


def _overview(subject: ReportSubject, facts: ModelFacts, summary: Summary) -> list[Part]:
    """The model, the machine, and the most important numbers."""
    model, runs = subject.model, max(summary.num_executions, 1)
    placement = model.placement
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = [
        ("model", subject.name),
        *([("file", bytes_text(facts.file_bytes))] if facts.file_bytes else []),
        *subject.facts,
        ("layers", f"{len(facts.layers)} of {len(facts.operators)} kinds"),
        ("parameters", f"{count_text(facts.parameters)}, {bytes_text(facts.parameter_bytes)}"),
        ("multiplications added up", count_text(facts.macs)),
        ("arithmetic operations", count_text(facts.operations)),
        ("working memory", bytes_text(placement.peak_bytes if placement is not None else 0)),
        ("one run, mean", time_text(summary.wall_ns / 1e3 / runs)),
        ("inputs were", subject.inputs_text or "given"),
    ]
    tensors = [
        (f"{kind} {spec.name}", f"{spec.data_type.name}{format_shape(spec.shape)}")
        for kind, specs in (("input", model.inputs), ("output", model.outputs))
        for spec in specs
    ]
    machine = [
        ("machine", describe_machine()),
        ("date", now),
        ("armpy", armpy.__version__),
        ("Python, NumPy", f"{platform.python_version()}, {np.__version__}"),
        *_backend_versions(model),
    ]
    return [Facts(told), Facts(tensors), Facts(machine), *_hints(model)]


def _backend_versions(model: Model) -> list[tuple[str, str]]:
    """The backends that run layers, with what they come from."""
    placement = model.placement
    used = {} if placement is None else placement.layers_by_backend
    candidates = {c.backend_id: c for c in model.runtime.registry.candidates}
    return [
        (f"backend {name}", candidates[name].source if name in candidates else "registered")
        for name, count in used.items()
        if count
    ]


def _hints(model: Model) -> list[Part]:
    """What a reader should know at once."""
    placement = model.placement
    if placement is None or not placement.fallbacks:
        return []
    text = f"{placement.fallbacks} layers do not run on the first choice; see Placement for why."
    return [Text(text, "note")]
