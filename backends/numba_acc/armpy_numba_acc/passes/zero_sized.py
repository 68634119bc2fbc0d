"""Empty tensors: leaves them out, as there is nothing to compute.

Notes
-----
The kinds of layers that are asked for by name are imported when there is an empty tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy import ops
from armpy.graph import Layer, SubgraphView, Value
from armpy.graph.nesting import graphs_of
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo


def has_empty(infos: OperandInfos) -> bool:
    """Return whether there are tensors without elements."""
    return any(map(_is_empty, infos))


def gives_nothing(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> bool:
    """Return whether there is nothing to compute for a layer, and nothing to check."""
    checks_indices = isinstance(operation, ops.Gather | ops.GatherNd | ops.ScatterNd)
    if checks_indices and not _is_empty(inputs[1]) and not _has_constant_indices(operation, inputs):
        return False
    # A graph within may look something up, or never come to its end.
    return all(map(_is_empty, outputs)) and not any(graphs_of(operation))


def needed_inputs(operation: Operation, inputs: OperandInfos) -> OperandInfos:
    """Return the inputs that a layer needs; all, except what adds nothing to a longer tensor."""
    if isinstance(operation, ops.Concat):
        return tuple(info for info in inputs if not _is_empty(info))
    return inputs


def adds_nothing(operation: Operation, inputs: OperandInfos) -> bool:
    """Return whether a layer writes nothing into its input, which is the output."""
    is_update = isinstance(operation, ops.ScatterElements)
    return is_update and _is_empty(inputs[1]) and not _is_empty(inputs[0])


def refusal_of_empty(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Why a layer that has elements to compute cannot do without those that are not there."""
    asks_shapes = isinstance(operation, ops.Rank | ops.Shape)
    needed = () if asks_shapes else needed_inputs(operation, inputs)
    results = () if isinstance(operation, ops.Splitter) else outputs
    missing = [info for info in (*needed, *results) if _is_empty(info)]
    return f"{missing[0]} has no elements" if missing else ""


def without_zero_sized(view: SubgraphView) -> SubgraphView:
    """A region without layers that have nothing to compute, and without what adds nothing.

    Parameters
    ----------
    view
        Whose layers `armpy_numba_acc.passes.support.support` has taken.
    """
    if not any(has_empty((*layer.input_infos, *layer.output_infos)) for layer in view.layers):
        return view
    layers = [
        _without_empty(layer)
        for layer in view.layers
        if not gives_nothing(layer.operation, layer.input_infos, layer.output_infos)
    ]
    return replace(view, layers=tuple(layers))


def _without_empty(layer: Layer) -> Layer:
    """A layer without those tensors that have no elements and that it can do without."""
    inputs, outputs = layer.inputs, layer.outputs
    if adds_nothing(layer.operation, layer.input_infos):
        shape = layer.output.info.known_shape
        return replace(layer, operation=ops.Reshape(shape), inputs=inputs[:1])
    if isinstance(layer.operation, ops.Concat):
        inputs = tuple(value for value in inputs if _has_elements(value))
    if isinstance(layer.operation, ops.Splitter):
        outputs = tuple(value for value in outputs if _has_elements(value))
    if (inputs, outputs) == (layer.inputs, layer.outputs):
        return layer
    return replace(layer, inputs=inputs, outputs=outputs)


def _has_constant_indices(operation: Operation, inputs: OperandInfos) -> bool:
    """Return whether a lookup's indices are checked where support is asked for."""
    indices = inputs[1]
    return isinstance(operation, ops.Gather) and indices is not None and indices.is_constant


def _has_elements(value: Value | None) -> bool:
    """Return whether there is something in a tensor."""
    return value is None or not _is_empty(value.info)


def _is_empty(info: TensorInfo | None) -> bool:
    """Return whether a tensor, whose shape is known, has no elements."""
    return info is not None and 0 in info.known_shape
