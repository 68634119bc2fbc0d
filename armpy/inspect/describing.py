"""Describes models: what their files are made of, and where each layer went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armpy.errors import ParserError, UnsupportedOperatorError
from armpy.graph import Graph
from armpy.inspect.estimates import estimate_macs
from armpy.inspect.facts import LayerFacts, LayerStatus, ModelFacts, TensorFacts
from armpy.inspect.flat_outline import Flat, flatten, outline_of_graph
from armpy.inspect.inferred_shapes import InferredShapes, evaluator_of, shape_layers
from armpy.inspect.layer_outcomes import LayerOutcome, LayerOutcomes, Origins
from armpy.plugins.hooks.outline import LEFT_OUT, FileTensor
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy.compiler import Evaluator, OptimizedNetwork, Placement
    from armpy.model import Model
    from armpy.plugins.hooks.outline import FileOutline


def describe_model(
    model: Model, outline: FileOutline | None = None, *, file_bytes: int = 0
) -> ModelFacts:
    """Describe a model that was loaded: each layer of its file, and where it went.

    Parameters
    ----------
    model : Model
    outline : FileOutline, optional
        Of its file, as `armpy.model.model_files.ModelOrigin.outline` reads it. Without one, the
        layers are those of armpy's network.
    file_bytes : int
        Size of its file.

    Notes
    -----
    Where no shapes are known yet, layers are `LayerStatus.UNPLACED`. Where shapes depend on
    elements, the layers behind them are so until the model has run.
    """
    network = model.runtime.get_network(model.network_id)
    loaded = [network, *getattr(network, "inner_networks", ())]
    optimized = [one.optimized for one in loaded if one.optimized is not None]
    return describe_network(
        model.graph,
        model.placement,
        optimized,
        outline,
        file_bytes=file_bytes,
        evaluator=None if model.graph.is_fully_shaped else evaluator_of(model.runtime.registry),
    )


def describe_network(
    graph: Graph,
    placement: Placement | None,
    optimized: Iterable[OptimizedNetwork] = (),
    outline: FileOutline | None = None,
    *,
    file_bytes: int = 0,
    evaluator: Evaluator | None = None,
) -> ModelFacts:
    """`describe_model` of its parts.

    Parameters
    ----------
    graph : Graph
        As it was loaded.
    placement : Placement or None
    optimized : iterable of OptimizedNetwork
        Of the graph, then of those that control flow runs; as far as there are some.
    outline : FileOutline, optional
    file_bytes : int
    evaluator : Evaluator, optional
        Computes constants, on which shapes may depend.
    """
    networks = list(optimized)
    flat = flatten(outline_of_graph(graph) if outline is None else outline)
    inputs = networks[0].source.inputs if networks else ()
    shapes = {v.name: v.info.known_shape for v in inputs if v.info.is_fully_shaped}
    shaped = shape_layers(graph, flat, shapes, evaluator)
    outcomes = LayerOutcomes(flat, shaped, placement, _origins(networks))
    parts = _Parts(flat, shaped, outcomes, {}, "", outline is not None)
    return _described(parts, file_bytes)


def describe_file(outline: FileOutline, problem: ParserError, *, file_bytes: int = 0) -> ModelFacts:
    """Describe a model that cannot be loaded.

    Parameters
    ----------
    outline : FileOutline
    problem : ParserError
        Why it cannot be loaded.
    file_bytes : int
        Size of its file.
    """
    unsupported: Mapping[str, int] = {}
    if isinstance(problem, UnsupportedOperatorError):
        unsupported = dict(problem.operators)
    flat = flatten(outline)
    shaped = InferredShapes()
    outcomes = LayerOutcomes(flat, shaped, None, {})
    missing = {name.removesuffix(" in control flow") for name in unsupported}
    for outcome, one in zip(outcomes.found, flat.operators, strict=True):
        if one.operator.kind in missing:
            outcome.status = LayerStatus.UNSUPPORTED
    parts = _Parts(flat, shaped, outcomes, unsupported, str(problem), True)
    return _described(parts, file_bytes)


def _origins(networks: Iterable[OptimizedNetwork]) -> dict[str, Origins]:
    """Operations of layers, and names of those that they were made of, by their names."""
    return {
        layer.name: (layer.operation.name, layer.origins)
        for network in networks
        for layer in network.source.layers
        if layer.origins
    }


@dataclass(frozen=True, eq=False, slots=True)
class _Parts:
    """Parts of a description."""

    flat: Flat
    shaped: InferredShapes
    outcomes: LayerOutcomes
    unsupported: Mapping[str, int]
    problem: str
    is_file: bool


def _described(parts: _Parts, file_bytes: int) -> ModelFacts:
    """Everything about a model."""
    flat = parts.flat
    tensors = tuple(_tensor(parts, index) for index in range(len(flat.tensors)))
    owners = _parameter_owners(flat)
    layers = tuple(
        _layer(parts, index, outcome, owners.get(index, ()))
        for index, outcome in enumerate(parts.outcomes.found)
    )
    learnt = [tensor for tensor, _ in flat.tensors if tensor.is_parameter]
    return ModelFacts(
        file_bytes,
        sum(tensor.num_elements for tensor in learnt),
        sum(tensor.size_bytes or 0 for tensor in learnt),
        sum(layer.macs for layer in layers),
        sum(layer.operations for layer in layers),
        dict(Counter(layer.operator for layer in layers).most_common()),
        dict(parts.unsupported),
        parts.problem,
        layers,
        tensors,
        parts.outcomes.programs,
        flat.inputs,
        flat.outputs,
        parts.is_file,
    )


def _parameter_owners(flat: Flat) -> dict[int, tuple[FileTensor, ...]]:
    """Per operator, the weights that it is the first to read."""
    found: dict[int, tuple[FileTensor, ...]] = {}
    for index, (tensor, _) in enumerate(flat.tensors):
        readers = flat.consumers.get(index, ())
        if tensor.is_parameter and readers:
            found[readers[0]] = (*found.get(readers[0], ()), tensor)
    return found


def _layer(
    parts: _Parts, index: int, outcome: LayerOutcome, weights: Iterable[FileTensor]
) -> LayerFacts:
    """One layer of the file."""
    flat, one, learnt = parts.flat, parts.flat.operators[index], tuple(weights)
    first = next((tensor for tensor in one.outputs if tensor != LEFT_OUT), None)
    work, macs = parts.shaped.work(index)
    if parts.problem:
        macs = estimate_macs(one.operator.kind, *_operands(flat, index))
    operations = round(work.flops) or 2 * macs
    return LayerFacts(
        index=index,
        operator=one.operator.kind,
        name=one.operator.name,
        inside=one.inside,
        inputs=one.inputs,
        outputs=one.outputs,
        shape=None if first is None else _shape(parts, first),
        type="" if first is None else flat.tensors[first][0].type,
        parameters=sum(tensor.num_elements for tensor in learnt),
        parameter_bytes=sum(tensor.size_bytes or 0 for tensor in learnt),
        macs=macs,
        operations=operations,
        bytes_moved=_bytes_moved(parts, index),
        status=outcome.status,
        backends=tuple(outcome.backends),
        programs=tuple(outcome.programs),
        into="" if outcome.into is None else flat.operators[outcome.into].operator.name,
        refusals=tuple(outcome.refusals),
        layer_names=tuple(outcome.names),
    )


def _operands(flat: Flat, index: int) -> tuple[list[FileTensor | None], list[FileTensor | None]]:
    """Tensors that an operator reads and writes; None for those that are left out."""
    one = flat.operators[index]
    inputs, outputs = (
        [None if place == LEFT_OUT else flat.tensors[place][0] for place in places]
        for places in (one.inputs, one.outputs)
    )
    return inputs, outputs


def _bytes_moved(parts: _Parts, index: int) -> int:
    """Bytes of all that an operator reads and writes."""
    one = parts.flat.operators[index]
    places = [place for place in (*one.inputs, *one.outputs) if place != LEFT_OUT]
    return sum(_size(parts, place) or 0 for place in places)


def _size(parts: _Parts, place: int) -> int | None:
    """Bytes of a tensor, with its actual shape where that is known."""
    tensor, info = parts.flat.tensors[place][0], parts.shaped.infos.get(place)
    if tensor.size_bytes is not None or info is None or not info.is_fully_shaped:
        return tensor.size_bytes
    return info.size_bytes


def _shape(parts: _Parts, place: int) -> tuple[int | None, ...] | None:
    """A tensor's shape, the actual one where that is known."""
    info: TensorInfo | None = parts.shaped.infos.get(place)
    return parts.flat.tensors[place][0].shape if info is None else info.shape


def _tensor(parts: _Parts, index: int) -> TensorFacts:
    """One tensor of the file."""
    flat = parts.flat
    tensor, inside = flat.tensors[index]
    return TensorFacts(
        index,
        tensor.name,
        inside,
        _shape(parts, index),
        tensor.type,
        _role(flat, index, tensor),
        _size(parts, index),
        tensor.scales,
        tensor.zero_points,
        tensor.axis,
        flat.producers.get(index),
        flat.consumers.get(index, ()),
    )


def _role(flat: Flat, index: int, tensor: FileTensor) -> str:
    """What a tensor is to the model."""
    if index in flat.inputs:
        return "input"
    if index in flat.outputs:
        return "output"
    if tensor.is_parameter:
        return "parameter"
    return "constant" if tensor.is_constant else ""
