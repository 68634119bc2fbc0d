"""Describes a model: its edge, its operators, its placement, its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from armpy.cli.load_request import LoadRequest, find_origin
from armpy.errors import ParserError
from armpy.graph import Graph, nested_graphs
from armpy.graph.dump import to_dot
from armpy.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.hooks.section import ReportSection
from armpy.optimizer import Alternative, Placement
from armpy.plugins.boundary import plain_text
from armpy.runtime import Model
from armpy.tensor import Quantization, TensorInfo

if TYPE_CHECKING:
    from armpy.plugins.hooks import Answer


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
class LayerReport:
    """One layer as it runs.

    Parameters
    ----------
    number : int
        In order of execution.
    operation, name, backend : str
    partition : int
    origins : tuple of str
        The model's layers that it was made from, if it was.
    """

    number: int
    operation: str
    name: str
    backend: str
    partition: int
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusalReport:
    """Why some layers do not run on a backend.

    Parameters
    ----------
    operation, backend, reason : str
    count : int
        Of layers.
    """

    operation: str
    backend: str
    reason: str
    count: int


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
    """What a model file is.

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
    """What a model file says of itself.

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
class ModelReport:
    """Everything that `armpy inspect` shows.

    Parameters
    ----------
    inputs, outputs : tuple of TensorReport
    operators : dict of str to int
        How often the model uses each operation, commonest first.
    signatures : tuple of SignatureReport
    placement : str
    layers_by_backend : dict of str to int
    layers : tuple of LayerReport
        Empty as long as the shapes of the inputs are not known.
    refusals : tuple of RefusalReport
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
    """

    inputs: tuple[TensorReport, ...]
    outputs: tuple[TensorReport, ...]
    operators: dict[str, int]
    signatures: tuple[SignatureReport, ...]
    placement: str
    layers_by_backend: dict[str, int]
    layers: tuple[LayerReport, ...]
    refusals: tuple[RefusalReport, ...]
    arena_bytes: int
    weights_bytes: int
    variables_bytes: int
    format: FormatReport | None = None
    sections: tuple[SectionReport, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    metadata: MetadataReport | None = None


def inspect_file(model: Model, request: LoadRequest) -> ModelReport:
    """Describe a model that was loaded from a file.

    Parameters
    ----------
    model : Model
    request : LoadRequest
        What it was loaded by.

    Raises
    ------
    ParserError
        If the front-end cannot describe the file.
    """
    origin = find_origin(request, model.runtime.registry)
    signatures = tuple(
        SignatureReport(found.name, tuple(found.inputs), tuple(found.outputs))
        for found in origin.signatures()
    )
    front_end = origin.front_end
    plugin = "" if front_end.is_own else front_end.candidate.source
    file_format = FormatReport(front_end.name, front_end.title, plugin, origin.describe())
    return replace(
        inspect_model(model, signatures),
        format=file_format,
        sections=_sections(model, request.model),
        metadata=metadata_report(lambda: model.metadata),
    )


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
    for field in fields(record):
        value = getattr(record, field.name)
        name = field.name.replace("_", " ")
        if field.name == "properties":
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
    if not registry.has_plugins:
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


def inspect_model(model: Model, signatures: tuple[SignatureReport, ...] = ()) -> ModelReport:
    """Describe a model.

    Parameters
    ----------
    model : Model
    signatures : tuple of SignatureReport
        Of the file that the model is from.
    """
    return report_of(model.graph, model.placement, signatures)


def report_of(
    graph: Graph, placement: Placement | None, signatures: tuple[SignatureReport, ...] = ()
) -> ModelReport:
    """Describe a network; the placement is None where it is not known yet."""
    graphs = (graph, *nested_graphs(graph))
    operators = Counter(layer.operation.name for part in graphs for layer in part.layers)
    return ModelReport(
        tuple([_tensor(value.name, value.info) for value in graph.inputs]),
        tuple([_tensor(*each) for each in _outputs(graph)]),
        dict(operators.most_common()),
        signatures,
        str(placement) if placement is not None else "not known before the inputs' shapes are",
        dict(placement.layers_by_backend) if placement is not None else {},
        () if placement is None else _layers(placement),
        () if placement is None else _refusals(placement),
        placement.peak_bytes if placement is not None else 0,
        _weights_bytes(graph),
        sum(variable.initial.nbytes for variable in graph.variables),
        alternatives=() if placement is None else placement.alternatives,
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


def _layers(placement: Placement) -> tuple[LayerReport, ...]:
    """Describe the layers in order of execution."""
    return tuple(
        LayerReport(
            number,
            layer.operation,
            f"{layer.inside}/{layer.layer}" if layer.inside else layer.layer,
            layer.backend,
            layer.partition,
            layer.origins,
        )
        for number, layer in enumerate(placement.layers)
    )


def _refusals(placement: Placement) -> tuple[RefusalReport, ...]:
    """Why layers do not run where they would have been preferred, commonest reason first."""
    reasons = Counter((r.operation, r.backend, r.text) for r in placement.refusals)
    return tuple(
        RefusalReport(operation, backend, text, count)
        for (operation, backend, text), count in reasons.most_common()
    )


def _weights_bytes(graph: Graph) -> int:
    """Size of all constants together, each counted once."""
    graphs = (graph, *nested_graphs(graph))
    values = (value for part in graphs for value in part.values())
    return sum(value.data.nbytes for value in values if value.data is not None)
