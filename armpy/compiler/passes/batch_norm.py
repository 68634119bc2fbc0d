"""Pass that folds batch normalisation: factors and terms per channel become weights and biases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armpy.compiler.passes.context import PassContext
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, only_reader, rewrite
from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.transpose_convolution import TransposeConvolution2d
from armpy.tensor import TensorInfo
from armpy.types import DataType

_Floats = npt.NDArray[np.float64]

FILTER_AXIS = {
    Convolution2d: 0,
    DepthwiseConvolution2d: 3,
    FullyConnected: 0,
    TransposeConvolution2d: 0,
}
"""Axis of the weights that runs along the output's channels."""


@dataclass(frozen=True, eq=False, slots=True)
class _FoldedNorm:
    """Weighted layer folded with the elementwise ones that follow."""

    layers: tuple[Layer, ...]  # the elementwise ones, in order
    weights: _Floats
    bias: _Floats
    activation: FusedActivation


def fold_batch_norm(graph: Graph, context: PassContext) -> Graph:
    """Multiply weights by the constant factors that follow, and add constant terms to the bias.

    In float64, rounded once. Results are not the same to the bit: sums are of other numbers.

    References
    ----------
    Arm NN FuseBatchNormIntoConvolution2D and FuseBatchNormIntoDepthwiseConvolution2D. Files have
    batch normalisation as multiplications and additions.
    """
    norms: dict[Layer, _FoldedNorm] = {}
    for layer in graph.layers:
        folded = _folded(graph, layer)
        if folded is not None and _fits(folded, layer["weights"].info):
            norms[layer] = folded
    gone = {member for folded in norms.values() for member in folded.layers}
    return rewrite(graph, norms, _add, gone)


def _add(rewriter: Rewriter, layer: Layer, folded: _FoldedNorm) -> None:
    """Add a layer with the layers folded into it."""
    weights, info = layer["weights"], layer["weights"].info
    bias_info = TensorInfo(folded.bias.shape, info.data_type)
    inputs: list[Value | None] = [
        rewriter.mapped(layer["input"]),
        rewriter.constant(folded.weights.astype(info.data_type.dtype), info, weights.name),
        rewriter.constant(
            folded.bias.astype(info.data_type.dtype), bias_info, f"{weights.name}/bias"
        ),
        *layer.inputs[3:],
    ]
    operation = layer.operation.with_attributes(activation=folded.activation)
    new_layer = rewriter.replace(layer, operation, inputs, origins=(layer, *folded.layers))
    rewriter.alias(folded.layers[-1].output, new_layer.output)


def _folded(graph: Graph, layer: Layer) -> _FoldedNorm | None:
    """Fold a weighted layer with the elementwise ones that follow; None if there are none."""
    axis = FILTER_AXIS.get(type(layer.operation))
    if axis is None or layer.operation.attributes()["activation"] is not FusedActivation.NONE:
        return None
    weights, bias = layer.constant("weights"), layer.operand("bias")
    if weights is None or (bias is not None and bias.data is None):
        return None
    if layer["weights"].info.data_type not in (DataType.FLOAT32, DataType.FLOAT16):
        return None
    if any(value is not None for value in layer.inputs[3:]):
        return None
    shape = [1] * weights.ndim
    shape[axis] = -1
    bias_data = None if bias is None else bias.data
    terms = np.zeros(weights.shape[axis]) if bias_data is None else bias_data.astype(np.float64)
    folded = _FoldedNorm((), weights.astype(np.float64), terms, FusedActivation.NONE)
    value = layer.output
    # After a clamp, factors and terms are no longer those of the sum.
    while folded.activation is FusedActivation.NONE:
        following = only_reader(graph, value)
        step = None if following is None else _step(layer, following, value, len(terms))
        if following is None or step is None:
            break
        factor, term = step
        folded = replace(
            folded,
            layers=(*folded.layers, following),
            weights=folded.weights * factor.reshape(shape),
            bias=folded.bias * factor + term,
            activation=following.operation.attributes()["activation"],
        )
        value = following.output
    return folded if folded.layers else None


def _step(
    layer: Layer, following: Layer, value: Value, channels: int
) -> tuple[_Floats, _Floats] | None:
    """Factor and term per channel of an elementwise layer; None if it is something else."""
    operation = following.operation
    if not isinstance(operation, ElementwiseBinary):
        return None
    is_left = following["lhs"] is value
    other = following["rhs"] if is_left else following["lhs"]
    # A constant that broadcasts the output is not a factor of it.
    if other.data is None or following.output.info.shape != value.info.shape:
        return None
    numbers = per_channel(other.data.astype(np.float64), layer, channels)
    if numbers is None:
        return None
    kind, ones, zeros = operation.operation, np.ones(channels), np.zeros(channels)
    if kind is BinaryOperation.MUL:
        return numbers, zeros
    if kind is BinaryOperation.ADD:
        return ones, numbers
    if kind is BinaryOperation.SUB:
        return (ones, -numbers) if is_left else (-ones, numbers)
    # By 0 it gives infinities and NaN, which no weights give for all inputs.
    if kind is BinaryOperation.DIV and is_left and np.all(numbers != 0):
        return 1 / numbers, zeros
    return None


def per_channel(data: _Floats, layer: Layer, channels: int) -> _Floats | None:
    """Numbers as one per channel; None if they differ along another axis."""
    rank = len(layer.output.info.known_shape)
    layout = layer.operation.attributes().get("data_layout")
    axis = rank - 1 if layout is None else layout.channel_axis
    shape: Sequence[int] = (1,) * (rank - data.ndim) + data.shape
    if any(size != 1 for index, size in enumerate(shape) if index != axis):
        return None
    return np.broadcast_to(data.reshape(-1), channels)


def _fits(folded: _FoldedNorm, info: TensorInfo) -> bool:
    """Return whether weights and biases can be stored."""
    is_half = info.data_type is DataType.FLOAT16
    # A weight that rounds to infinity would spoil every sum.
    largest = float(np.finfo(np.float16 if is_half else np.float32).max)
    return all(np.all(np.abs(array) <= largest) for array in (folded.weights, folded.bias))
