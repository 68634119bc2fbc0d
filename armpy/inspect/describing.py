"""Describes models: what their files are made of, and where each layer went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from armpy.errors import ParserError, UnsupportedOperatorError
from armpy.graph import Graph
from armpy.inspect.facts import LayerFacts, LayerStatus, ModelFacts, TensorFacts
from armpy.inspect.flat_outline import Flat, FlatOperator, flatten, outline_of_graph
from armpy.inspect.inferred_shapes import evaluator_of, shape_layers
from armpy.inspect.layer_outcomes import find_outcomes
from armpy.inspect.work import family_of, work_of
from armpy.plugins.hooks.outline import LEFT_OUT, FileTensor

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
    outline : FileOutline, optional
        Of its file, as `armpy.model.model_files.ModelOrigin.outline` reads it. Without one, the
        layers are those of armpy's network.
    file_bytes : int
        Size of its file.

    Notes
    -----
    Where no shapes are known yet, layers are `LayerStatus.UNPLACED`. Where shapes depend on
    elements, the layers that follow are so until the model has run.
    """
    network = model.runtime.get_network(model.network_id)
    loaded = [network, *getattr(network, "inner_networks", ())]
    optimized = [network.optimized for network in loaded if network.optimized is not None]
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
        Graph as loaded.
    optimized : iterable of OptimizedNetwork
        Optimised networks: of the graph, then of graphs of control flow, as far as there are
        some.
    evaluator : Evaluator, optional
        Computes constants, on which shapes may depend.
    """
    networks = list(optimized)
    flat = flatten(outline_of_graph(graph) if outline is None else outline)
    inputs = networks[0].source.inputs if networks else ()
    shapes = {v.name: v.info.known_shape for v in inputs if v.info.is_fully_shaped}
    shape_layers(graph, flat, shapes, evaluator)
    if placement is not None:
        origins = {
            layer.name: (layer.operation.name, layer.origins)
            for network in networks
            for layer in network.source.layers
            if layer.origins
        }
        find_outcomes(flat, placement, origins)
    return _facts(flat, file_bytes, is_file=outline is not None)


def describe_file(outline: FileOutline, problem: ParserError, *, file_bytes: int = 0) -> ModelFacts:
    """Describe a model that cannot be loaded.

    Parameters
    ----------
    problem : ParserError
        Why it cannot be loaded.
    file_bytes : int
        Size of its file.
    """
    unsupported: Mapping[str, int] = {}
    if isinstance(problem, UnsupportedOperatorError):
        unsupported = dict(problem.operators)
    flat = flatten(outline)
    missing = {name.removesuffix(" in control flow") for name in unsupported}
    for entry in flat.operators:
        if entry.operator.kind in missing:
            entry.status = LayerStatus.UNSUPPORTED
    return _facts(flat, file_bytes, unsupported, str(problem), problem.fix)


def _facts(
    flat: Flat,
    file_bytes: int,
    unsupported: Mapping[str, int] = MappingProxyType({}),
    problem: str = "",
    fix: str = "",
    *,
    is_file: bool = True,
) -> ModelFacts:
    tensors = tuple(_tensor(flat, index) for index in range(len(flat.tensors)))
    # Each weight belongs to the operator that is the first to read it.
    owned: dict[int, list[FileTensor]] = defaultdict(list)
    for index, (tensor, _) in enumerate(flat.tensors):
        if tensor.is_parameter and (readers := flat.consumers.get(index)):
            owned[readers[0]].append(tensor)
    layers = tuple(
        _layer(flat, index, entry, owned[index], is_loaded=not problem)
        for index, entry in enumerate(flat.operators)
    )
    learnt = [tensor for tensor, _ in flat.tensors if tensor.is_parameter]
    return ModelFacts(
        file_bytes,
        sum(tensor.num_elements for tensor in learnt),
        sum(tensor.size_bytes or 0 for tensor in learnt),
        sum(layer.macs for layer in layers),
        sum(layer.operations for layer in layers),
        dict(Counter(layer.operator for layer in layers).most_common()),
        dict(unsupported),
        problem,
        layers,
        tensors,
        tuple(flat.programs),
        flat.inputs,
        flat.outputs,
        is_file,
        fix,
    )


def _layer(
    flat: Flat, index: int, entry: FlatOperator, learnt: Sequence[FileTensor], *, is_loaded: bool
) -> LayerFacts:
    first = next((tensor for tensor in entry.outputs if tensor != LEFT_OUT), None)
    if is_loaded:
        macs, operations = _work(entry)
    else:
        inputs, outputs = (
            [None if place == LEFT_OUT else flat.tensors[place][0] for place in places]
            for places in (entry.inputs, entry.outputs)
        )
        macs, operations = estimate_macs(entry.operator.kind, inputs, outputs), 0
    places = [place for place in (*entry.inputs, *entry.outputs) if place != LEFT_OUT]
    return LayerFacts(
        index=index,
        operator=entry.operator.kind,
        name=entry.operator.name,
        inside=entry.inside,
        inputs=entry.inputs,
        outputs=entry.outputs,
        shape=None if first is None else _shape(flat, first),
        type="" if first is None else flat.tensors[first][0].type,
        parameters=sum(tensor.num_elements for tensor in learnt),
        parameter_bytes=sum(tensor.size_bytes or 0 for tensor in learnt),
        macs=macs,
        operations=operations or 2 * macs,
        bytes_moved=sum(_size(flat, place) or 0 for place in places),
        status=entry.status,
        backends=tuple(entry.backends),
        programs=tuple(entry.programs),
        into="" if entry.into is None else flat.operators[entry.into].operator.name,
        refusals=tuple(entry.refusals.values()),
        layer_names=tuple(entry.names),
    )


def _work(entry: FlatOperator) -> tuple[int, int]:
    """Multiplications of an operator's layers that are added up, and all of their operations."""
    macs, flops = 0, 0.0
    for layer in entry.layers:
        work = work_of(layer.operation, layer.input_infos, layer.output_infos)
        flops += work.flops
        if family_of(layer.operation.name) == "products":
            macs += round(work.flops / 2)
    return macs, round(flops)


def _size(flat: Flat, place: int) -> int | None:
    """Bytes of a tensor, with its actual shape where that is known."""
    tensor, info = flat.tensors[place][0], flat.infos.get(place)
    if tensor.size_bytes is not None or info is None or not info.is_fully_shaped:
        return tensor.size_bytes
    return info.size_bytes


def _shape(flat: Flat, place: int) -> tuple[int | None, ...] | None:
    """A tensor's shape, the actual one where that is known."""
    info = flat.infos.get(place)
    return flat.tensors[place][0].shape if info is None else info.shape


def _tensor(flat: Flat, index: int) -> TensorFacts:
    tensor, inside = flat.tensors[index]
    roles = {
        "input": index in flat.inputs,
        "output": index in flat.outputs,
        "parameter": tensor.is_parameter,
        "constant": tensor.is_constant,
    }
    return TensorFacts(
        index,
        tensor.name,
        inside,
        _shape(flat, index),
        tensor.type,
        next((role for role, is_so in roles.items() if is_so), ""),
        _size(flat, index),
        tensor.scales,
        tensor.zero_points,
        tensor.axis,
        flat.producers.get(index),
        flat.consumers.get(index, ()),
    )


_WINDOWS: Mapping[str, tuple[int | None, int]] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "FULLY_CONNECTED", "Conv"), (None, 0)),
        **dict.fromkeys(("DEPTHWISE_CONV_2D", "CONV_3D"), (None, -1)),
        **dict.fromkeys(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), (2, -1)),
        "ConvTranspose": (0, 0),
    }
)
"""The input, or None for the output, each element of which meets the weights of one channel; and
the axis of the weights' channels."""

_PRODUCTS = frozenset(("BATCH_MATMUL", "MatMul", "Gemm"))


def estimate_macs(
    kind: str, inputs: Sequence[FileTensor | None], outputs: Sequence[FileTensor | None]
) -> int:
    """Count an operator's multiply-accumulates, as far as its name and shapes determine them.

    The kind is in the words of TFLite or ONNX; operands are None where they are left out. The
    answer is 0 for operators that do not multiply, and where a shape is missing.
    """
    needed = [*inputs[:2], *outputs[:1]]
    known, output = [tensor for tensor in inputs if tensor is not None], next(iter(outputs), None)
    if len(inputs) < 2 or output is None or any(t is None or not t.shape for t in needed):
        return 0
    # An unknown dimension counts as 1.
    first, weights = ([1 if dim is None else dim for dim in t.shape or ()] for t in known[:2])
    if kind in _PRODUCTS:
        depth = first[-1]
        if depth not in weights[-2:]:
            depth = max(set(first[-2:]) & set(weights[-2:]), default=1)
        return output.num_elements * depth
    place, axis = _WINDOWS.get(kind, (len(known), 0))
    if place is not None and place >= len(known):
        return 0
    spread = output if place is None else known[place]
    return spread.num_elements * prod(weights) // max(weights[axis], 1)
