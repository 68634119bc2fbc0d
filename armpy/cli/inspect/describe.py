"""Describes a model: its edge, its operators, its placement, its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.placement_table import PlacementReport, RefusedLayers, refused_layers
from armpy.cli.registry import find_origin, registry_of
from armpy.compiler import Alternative, Evaluator, OptimizedNetwork, Placement
from armpy.errors import ParserError
from armpy.graph import Graph, nested_graphs
from armpy.graph.dump import to_dot
from armpy.inspect import (
    ModelFacts,
    TensorFacts,
    describe_file,
    describe_model,
    describe_network,
    with_file_names,
)
from armpy.model import Model
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.section import ReportSection
from armpy.plugins.proxy.guarded_call import plain_text
from armpy.tensor import Quantization, TensorInfo

if TYPE_CHECKING:
    from armpy.model.model_files import ModelOrigin
    from armpy.plugins.hook_plugins import Answer


_SECTIONS = "armpy_report_sections"
_MOST_ITEMS = 8
_LONGEST_FACT = 200


@dataclass(frozen=True, slots=True)
class TensorReport:
    """One input or output.

    Parameters
    ----------
    name : str
    shape : tuple of (int or None), or None
        None where the caller can choose.
    type : str
    scale : float or None
    zero_point : int or None
    """

    name: str
    shape: tuple[int | None, ...] | None
    type: str
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """One signature of a model file.

    Parameters
    ----------
    name : str
    inputs, outputs : tuple of str
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormatReport:
    """Format of a model file, and the front-end that parsed it.

    Parameters
    ----------
    front_end, title : str
        Name of the front-end that has parsed it, and the format in words.
    plugin : str
        What the front-end comes from; empty for armpy's own.
    facts : dict of str to str
        What the front-end tells of the file.
    """

    front_end: str
    title: str
    plugin: str
    facts: dict[str, str]


@dataclass(frozen=True, slots=True)
class MetadataReport:
    """Metadata of a model file.

    Parameters
    ----------
    facts : dict of str to str
        Of the model, by what they are called.
    tensors : dict of str to dict of str to str
        Of inputs and outputs, by the model's names for them.
    """

    facts: dict[str, str]
    tensors: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class SectionReport:
    """A table that a plugin has added.

    Parameters
    ----------
    plugin, title : str
    columns : tuple of str
    rows : tuple of tuple of str
    """

    plugin: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class InspectionReport:
    """Everything that `armpy inspect` shows.

    Parameters
    ----------
    inputs, outputs : tuple of TensorReport
    facts : ModelFacts
        Of the file: layers, tensors, totals.
    signatures : tuple of SignatureReport
    placement : str
    layers_by_backend : dict of str to int
    refusals : tuple of RefusedLayers
    arena_bytes : int
        Working memory of one execution.
    weights_bytes, variables_bytes : int
        Of constants, and of what is kept between executions.
    format : FormatReport, optional
        None for a model that is no file.
    sections : tuple of SectionReport
        From plugins.
    alternatives : tuple of Alternative
        Placements that were weighed, the cheapest first; empty if the backends' order decides.
    metadata : MetadataReport, optional
        None for a model that is no file.
    placed : PlacementReport, optional
        The placement as data; None as long as the shapes of the inputs are not known.
    """

    inputs: tuple[TensorReport, ...]
    outputs: tuple[TensorReport, ...]
    facts: ModelFacts
    signatures: tuple[SignatureReport, ...] = ()
    placement: str = ""
    layers_by_backend: dict[str, int] = field(default_factory=dict)
    refusals: tuple[RefusedLayers, ...] = ()
    arena_bytes: int = 0
    weights_bytes: int = 0
    variables_bytes: int = 0
    format: FormatReport | None = None
    sections: tuple[SectionReport, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    metadata: MetadataReport | None = None
    placed: PlacementReport | None = None


def inspect_file(model: Model, request: CliLoadRequest) -> InspectionReport:
    """Describe a model that was loaded from a file.

    Parameters
    ----------
    model : Model
    request : CliLoadRequest
        What it was loaded by.

    Raises
    ------
    ParserError
        If the front-end cannot describe the file.
    """
    origin = find_origin(request, model.runtime.registry)
    outline = origin.outline(request.options.signature)
    facts = describe_model(model, outline, file_bytes=_size_of(request.model))
    return replace(
        _report(model.graph, model.placement, facts),
        signatures=_signatures(origin),
        format=_format(origin),
        sections=_sections(model, request.model),
        metadata=metadata_report(lambda: model.metadata),
    )


def inspect_unloadable(request: CliLoadRequest, problem: ParserError) -> InspectionReport:
    """Describe a model file that could not be loaded.

    Parameters
    ----------
    request : CliLoadRequest
    problem : ParserError
        Why not; raised again if the file cannot be described either.
    """
    origin = find_origin(request, registry_of(request))
    try:
        outline = origin.outline(request.options.signature)
        signatures, file_format = _signatures(origin), _format(origin)
    except ParserError:
        raise problem from None
    if outline is None:
        raise problem
    facts = describe_file(outline, problem, file_bytes=_size_of(request.model))
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


def _size_of(path: str) -> int:
    """Bytes of a file."""
    return Path(path).stat().st_size


def _signatures(origin: ModelOrigin) -> tuple[SignatureReport, ...]:
    """The signatures of a file."""
    return tuple(
        SignatureReport(found.name, tuple(found.inputs), tuple(found.outputs))
        for found in origin.signatures()
    )


def _format(origin: ModelOrigin) -> FormatReport:
    """What a file is."""
    front_end = origin.front_end
    plugin = "" if front_end.is_own else front_end.candidate.source
    return FormatReport(front_end.name, front_end.title, plugin, origin.describe())


def _file_tensor(tensor: TensorFacts) -> TensorReport:
    """An input or output of a file that cannot be loaded."""
    scale = tensor.scales[0] if len(tensor.scales) == 1 else None
    point = tensor.zero_points[0] if scale is not None and tensor.zero_points else None
    return TensorReport(tensor.name, tensor.shape, tensor.type, scale, point)


def metadata_report(read: Callable[[], ModelMetadata]) -> MetadataReport:
    """What a model's file says of itself, as text."""
    try:
        found = read()
    except ParserError as error:
        return MetadataReport({"damaged": str(error)}, {})
    tensors = {**found.inputs, **found.outputs}
    return MetadataReport(
        _facts(found), {name: facts for name in tensors if (facts := _facts(tensors[name]))}
    )


def _facts(record: ModelMetadata | TensorMetadata) -> dict[str, str]:
    """What is said in a record of metadata, but for other records, as text by name."""
    facts: dict[str, str] = {}
    for one in fields(record):
        value = getattr(record, one.name)
        name = one.name.replace("_", " ")
        if one.name == "properties":
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
    """What plugins have to say about a model."""
    registry = model.runtime.registry
    if not registry.has_plugins(_SECTIONS):
        return ()
    placement = model.placement
    answers = registry.plugins.ask(
        _SECTIONS,
        ReportSection,
        exactly=True,
        graph=model.graph,
        layers_by_backend=MappingProxyType(
            dict(placement.layers_by_backend) if placement is not None else {}
        ),
        path=path,
    )
    reports = (
        registry.plugins.contained(
            answer.candidate, _SECTIONS, partial(_section, answer), default=None
        )
        for answer in answers
    )
    return tuple(report for report in reports if report is not None)


def _section(answer: Answer[ReportSection]) -> SectionReport:
    """What a plugin has to say, as plain text; raises what its objects raise."""
    given = answer.value
    section = ReportSection(given.title, given.columns, given.rows)  # checked once more
    return SectionReport(
        answer.candidate.label,
        plain_text(section.title),
        tuple(map(plain_text, section.columns)),
        tuple(tuple(plain_text(str(cell)) for cell in row) for row in section.rows),
    )


def inspect_model(model: Model) -> InspectionReport:
    """Describe a model that is no file."""
    return _report(model.graph, model.placement, describe_model(model))


def report_of(
    graph: Graph, optimized: OptimizedNetwork | None, evaluator: Evaluator | None = None
) -> InspectionReport:
    """Describe a network that is not loaded; without its placement if it is not optimised."""
    placement = None if optimized is None else optimized.placement
    networks = () if optimized is None else (optimized,)
    facts = describe_network(graph, placement, networks, evaluator=evaluator)
    return _report(graph, placement, facts)


def _report(graph: Graph, placement: Placement | None, facts: ModelFacts) -> InspectionReport:
    """Describe a network; the placement is None where it is not known yet."""
    report = InspectionReport(
        tuple([_tensor(value.name, value.info) for value in graph.inputs]),
        tuple([_tensor(*each) for each in _outputs(graph)]),
        facts,
        placement="not known before the inputs' shapes are",
        weights_bytes=_weights_bytes(graph),
        variables_bytes=sum(variable.initial.nbytes for variable in graph.variables),
    )
    if placement is None:
        return report
    named = with_file_names(placement, facts)
    return replace(
        report,
        placement=str(named),
        layers_by_backend=dict(named.layers_by_backend),
        refusals=refused_layers(named),
        arena_bytes=named.peak_bytes,
        alternatives=named.alternatives,
        placed=PlacementReport.of(named),
    )


def write_dot(model: Model, path: str) -> None:
    """Write the network as it runs, with backends, in Graphviz's language."""
    optimized = model.runtime.get_network(model.network_id).optimized
    if optimized is None:
        text = to_dot(model.graph)
    else:
        text = to_dot(optimized.graph, optimized.backend_ids)
    Path(path).write_text(text, "utf-8")


def _outputs(graph: Graph) -> list[tuple[str, TensorInfo]]:
    """Names and infos of a graph's outputs."""
    infos = [value.info for value in graph.outputs]
    return list(zip(graph.output_names, infos, strict=True))


def _tensor(name: str, info: TensorInfo) -> TensorReport:
    """Describe an input or output."""
    quantization: Quantization | None = info.quantization
    scale = None if quantization is None else quantization.scale
    zero_point = None if quantization is None else quantization.zero_point
    return TensorReport(name, info.shape, info.data_type.name, scale, zero_point)


def _weights_bytes(graph: Graph) -> int:
    """Size of all constants together, each counted once."""
    graphs = (graph, *nested_graphs(graph))
    values = (value for part in graphs for value in part.values())
    return sum(value.data.nbytes for value in values if value.data is not None)
