"""Describes a model: its edge, its operators, its placement, its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.registry import find_origin, registry_of
from armpy.compiler import Alternative, Placement
from armpy.core.dataclass import dataclass
from armpy.core.shell import shell_word
from armpy.errors import ParserError
from armpy.graph import Graph, nested_graphs
from armpy.inspect import ModelFacts, TensorFacts, describe_file, describe_model, with_file_names
from armpy.model import Model
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.section import ReportSection
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy.model.model_files import ModelOrigin
    from armpy.plugins.hook_plugins import Answer


_SECTIONS = "armpy_report_sections"
_MOST_ITEMS = 8
_LONGEST_FACT = 200


@dataclass(frozen=True, slots=True)
class TensorReport:
    """One input or output."""

    name: str
    shape: tuple[int | None, ...] | None  # None where the caller can choose
    type: str
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """One signature of a model file."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormatReport:
    """Format of a model file, and the front-end that parsed it."""

    # Name of the front-end that has parsed it, empty for compiled models; the format in words.
    front_end: str
    title: str
    plugin: str  # the front-end's plugin; empty for armpy's own
    facts: dict[str, str]  # the front-end's description of the file

    @classmethod
    def of(cls, origin: ModelOrigin) -> FormatReport:
        """The format of a model's file."""
        front_end = origin.front_end
        plugin = "" if front_end.is_own else front_end.candidate.source
        return cls(front_end.name, front_end.title, plugin, origin.describe())


@dataclass(frozen=True, slots=True)
class MetadataReport:
    """Metadata of a model file."""

    facts: dict[str, str]  # of the model, by name
    tensors: dict[str, dict[str, str]]  # of inputs and outputs, by the model's names for them
    damage: str = ""  # why nothing of it can be read; empty if it can


@dataclass(frozen=True, slots=True)
class SectionReport:
    """A table that a plugin has added."""

    plugin: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class InspectionReport:
    """Everything that `armpy inspect` shows."""

    inputs: tuple[TensorReport, ...]
    outputs: tuple[TensorReport, ...]
    facts: ModelFacts  # of the file: layers, tensors, totals
    signatures: tuple[SignatureReport, ...] = ()
    placement: str = ""
    layers_by_backend: dict[str, int] = field(default_factory=dict)
    arena_bytes: int = 0  # working memory of one execution
    # Of constants, and of tensors kept between executions.
    weights_bytes: int = 0
    variables_bytes: int = 0
    format: FormatReport | None = None  # None for a model that is not a file
    sections: tuple[SectionReport, ...] = ()  # from plugins
    # Placements that were weighed, the cheapest first; empty if the backends' order decides.
    alternatives: tuple[Alternative, ...] = ()
    metadata: MetadataReport | None = None  # None for a model that is not a file
    # The placement itself; None as long as the shapes of the inputs are not known.
    placed: Placement | None = None


def inspect_file(model: Model, request: CliLoadRequest) -> InspectionReport:
    """Describe a model that was loaded from a file by a request."""
    origin = find_origin(request, model.runtime.registry)
    outline = origin.outline(request.options.signature)
    facts = describe_model(model, outline, file_bytes=Path(request.model).stat().st_size)
    return replace(
        report_of(model.graph, model.placement, facts),
        signatures=_signatures(origin),
        format=FormatReport.of(origin),
        sections=_sections(model, request.model),
        metadata=metadata_report(lambda: model.metadata),
    )


def inspect_unloadable(request: CliLoadRequest, problem: ParserError) -> InspectionReport:
    """Describe a model file that could not be loaded, for the reason `problem`.

    It is raised again if the file cannot be described either.
    """
    origin = find_origin(request, registry_of(request))
    try:
        outline = origin.outline(request.options.signature)
        signatures, file_format = _signatures(origin), FormatReport.of(origin)
    except ParserError:
        raise problem from None
    if outline is None:
        raise problem
    facts = describe_file(outline, problem, file_bytes=Path(request.model).stat().st_size)
    inputs, outputs = (
        tuple(_file_tensor(facts.tensors[place]) for place in places)
        for places in (facts.inputs, facts.outputs)
    )
    constants = [t for t in facts.tensors if t.role in ("constant", "parameter")]
    return InspectionReport(
        inputs,
        outputs,
        facts,
        signatures,
        "armpy cannot run it",
        weights_bytes=sum(tensor.size_bytes or 0 for tensor in constants),
        format=file_format,
        metadata=metadata_report(lambda: origin.metadata(request.options.signature)),
    )


def _signatures(origin: ModelOrigin) -> tuple[SignatureReport, ...]:
    return tuple(
        SignatureReport(signature.name, tuple(signature.inputs), tuple(signature.outputs))
        for signature in origin.signatures()
    )


def _file_tensor(tensor: TensorFacts) -> TensorReport:
    """An input or output of a file that cannot be loaded."""
    scale = tensor.scales[0] if len(tensor.scales) == 1 else None
    point = tensor.zero_points[0] if scale is not None and tensor.zero_points else None
    return TensorReport(tensor.name, tensor.shape, tensor.type, scale, point)


def metadata_report(read: Callable[[], ModelMetadata]) -> MetadataReport:
    """Return the metadata of a model's file, as text."""
    try:
        metadata = read()
    except ParserError as error:
        return MetadataReport({}, {}, str(error))
    tensors = {**metadata.inputs, **metadata.outputs}
    return MetadataReport(
        _facts(metadata), {name: facts for name in tensors if (facts := _facts(tensors[name]))}
    )


def _facts(record: ModelMetadata | TensorMetadata) -> dict[str, str]:
    """Return a metadata record without its other records, as text by name."""
    facts: dict[str, str] = {}
    for attribute in fields(record):
        value = getattr(record, attribute.name)
        name = attribute.name.replace("_", " ")
        if attribute.name == "properties":
            facts.update((key, _shortened(text)) for key, text in value.items())
        elif isinstance(value, Mapping):
            texts = [key for key, item in value.items() if isinstance(item, tuple)]
            facts[name] = ", ".join(texts)
        elif isinstance(value, tuple):
            facts[name] = _list_text(value)
        else:
            facts[name] = _shortened(value)
    return {name: text for name, text in facts.items() if text}


def _list_text(items: tuple[object, ...]) -> str:
    """The first few of some numbers or texts."""
    shown = [f"{item:g}" if isinstance(item, float) else str(item) for item in items]
    if len(shown) <= _MOST_ITEMS:
        return "; ".join(shown)
    return f"{len(shown)}: {'; '.join(shown[:_MOST_ITEMS])} ..."


def _shortened(text: str) -> str:
    """The first line of a text, cut off where it is long."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST_FACT else f"{line[:_LONGEST_FACT]} ..."


def _sections(model: Model, path: str) -> tuple[SectionReport, ...]:
    registry = model.runtime.registry
    if not registry.has_plugins(_SECTIONS):
        return ()
    placement = model.placement
    answers = registry.plugins.ask(
        _SECTIONS,
        ReportSection,
        graph=model.graph,
        layers_by_backend=MappingProxyType(
            dict(placement.layers_by_backend) if placement is not None else {}
        ),
        path=path,
    )
    ask = registry.plugins.contained
    reports = [ask(a.candidate, _SECTIONS, partial(_section, a), default=None) for a in answers]
    return tuple(report for report in reports if report is not None)


def _section(answer: Answer[ReportSection]) -> SectionReport:
    """Return a plugin's section as text; raises what its objects raise."""
    section = answer.value
    return SectionReport(
        answer.candidate.label,
        section.title,
        tuple(section.columns),
        tuple(tuple(map(str, row)) for row in section.rows),
    )


def _placed_by_shapes(names: Sequence[str]) -> str:
    """Say that a placement depends on shapes of inputs, and how they are given."""
    text = "not known before the inputs' shapes are"
    if not names:
        return text
    return f"{text}: give them by {shape_options(names)}; those with the same dimensions follow"


def shape_options(names: Iterable[str]) -> str:
    """The options that give inputs a shape, to be filled in."""
    return " ".join(f"--shape {shell_word(f'{name}=SIZES')}" for name in names)


def report_of(graph: Graph, placement: Placement | None, facts: ModelFacts) -> InspectionReport:
    """Describe a network; the placement is None where it is not known yet."""
    names = [value.name for value in graph.inputs if not value.info.is_fully_shaped]
    report = InspectionReport(
        *edge_of(graph),
        facts,
        placement=_placed_by_shapes(names),
        # All constants, each counted once.
        weights_bytes=sum(
            value.data.nbytes
            for part in (graph, *nested_graphs(graph))
            for value in part.values()
            if value.data is not None
        ),
        variables_bytes=sum(variable.initial.nbytes for variable in graph.variables),
    )
    if placement is None:
        return report
    named = with_file_names(placement, facts)
    return replace(
        report,
        placement=str(named),
        layers_by_backend=dict(named.layers_by_backend),
        arena_bytes=named.peak_bytes,
        alternatives=named.alternatives,
        placed=named,
    )


def edge_of(graph: Graph) -> tuple[tuple[TensorReport, ...], tuple[TensorReport, ...]]:
    """Describe a graph's inputs and outputs."""
    inputs = [(value.name, value.info) for value in graph.inputs]
    outputs = zip(graph.output_names, [value.info for value in graph.outputs], strict=True)
    return tuple(starmap(_tensor, inputs)), tuple(starmap(_tensor, outputs))


def _tensor(name: str, info: TensorInfo) -> TensorReport:
    quantization = info.quantization
    scale = None if quantization is None else quantization.scale
    zero_point = None if quantization is None else quantization.zero_point
    return TensorReport(name, info.shape, info.data_type.name, scale, zero_point)
