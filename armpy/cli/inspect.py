"""Describes a model: its edge, its operators, its placement, its memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from armpy.errors import InvalidArgumentError
from armpy.graph import Graph, nested_graphs
from armpy.graph.dump import to_dot
from armpy.records import dataclass
from armpy.runtime import Model, TensorSpec
from armpy.tensor import Quantization


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


def inspect_model(model: Model, signatures: tuple[SignatureReport, ...] = ()) -> ModelReport:
    """Describe a model.

    Parameters
    ----------
    model : Model
    signatures : tuple of SignatureReport
        Of the file that the model is from.
    """
    graph = model.graph
    placement = model.placement
    graphs = (graph, *nested_graphs(graph))
    operators = Counter(layer.operation.name for part in graphs for layer in part.layers)
    return ModelReport(
        tuple(_tensor(spec) for spec in model.inputs),
        tuple(_tensor(spec) for spec in model.outputs),
        dict(operators.most_common()),
        signatures,
        str(placement) if placement is not None else "not known before the inputs' shapes are",
        dict(placement.layers_by_backend) if placement is not None else {},
        _layers(model),
        _refusals(model),
        placement.peak_bytes if placement is not None else 0,
        _weights_bytes(graph),
        sum(variable.initial.nbytes for variable in graph.variables),
    )


def read_signature_reports(path: str) -> tuple[SignatureReport, ...]:
    """The signatures of a model file.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    from armpy.frontends.tflite import signatures  # noqa: PLC0415  # only where a file is read

    return tuple(
        SignatureReport(found.name, tuple(found.inputs), tuple(found.outputs))
        for found in signatures(path).values()
    )


def check_signature(path: str, name: str | None) -> None:
    """Check that a model file has a signature, if one is asked for.

    Raises
    ------
    InvalidArgumentError
        If it has not.
    """
    if name is None:
        return
    names = [signature.name for signature in read_signature_reports(path)]
    if name not in names:
        raise InvalidArgumentError(
            "the model has no such signature",
            where="--signature",
            expected=", ".join(f"'{known}'" for known in names) or "none, as it has no signatures",
            actual=f"'{name}'",
        )


def write_dot(model: Model, path: str) -> None:
    """Write the network as it runs, with backends, in Graphviz's language."""
    optimized = model.runtime.get_network(model.network_id).optimized
    if optimized is None:
        text = to_dot(model.graph)
    else:
        text = to_dot(optimized.graph, optimized.backend_ids)
    Path(path).write_text(text, "utf-8")


def _tensor(spec: TensorSpec) -> TensorReport:
    """Describe an input or output."""
    quantization: Quantization | None = spec.quantization
    scale = None if quantization is None else quantization.scale
    zero_point = None if quantization is None else quantization.zero_point
    return TensorReport(spec.name, spec.shape, spec.data_type.name, scale, zero_point)


def _layers(model: Model) -> tuple[LayerReport, ...]:
    """Describe the layers in order of execution."""
    if model.placement is None:
        return ()
    return tuple(
        LayerReport(
            number,
            layer.operation,
            f"{layer.inside}/{layer.layer}" if layer.inside else layer.layer,
            layer.backend,
            layer.partition,
            layer.origins,
        )
        for number, layer in enumerate(model.placement.layers)
    )


def _refusals(model: Model) -> tuple[RefusalReport, ...]:
    """Why layers do not run where they would have been preferred, commonest reason first."""
    if model.placement is None:
        return ()
    reasons = Counter((r.operation, r.backend, r.text) for r in model.placement.refusals)
    return tuple(
        RefusalReport(operation, backend, text, count)
        for (operation, backend, text), count in reasons.most_common()
    )


def _weights_bytes(graph: Graph) -> int:
    """Size of all constants together, each counted once."""
    graphs = (graph, *nested_graphs(graph))
    values = (value for part in graphs for value in part.values())
    return sum(value.data.nbytes for value in values if value.data is not None)
