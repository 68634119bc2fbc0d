"""Operators that work on windows of volumes."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.flatbuffers.reader import TableReader
from armpy.frontends.tflite.node import BoundOperator, ConverterTable, flat_bias, fused_activation
from armpy.frontends.tflite.operators.windows import padding_of
from armpy.graph import Value
from armpy.ops.convolution import Convolution3d
from armpy.ops.movement import Transpose
from armpy.ops.transpose_convolution import TransposeConvolution3d

_OUTPUT_CHANNELS_FIRST = (4, 0, 1, 2, 3)
"""Permutation of weights (kd, kh, kw, i, o) that puts output channels first."""

_OUTPUT_BEFORE_INPUT = (3, 0, 1, 2, 4)
"""Permutation of weights (kd, kh, kw, o, i) that puts output channels before input channels."""


def _steps(options: TableReader, before: str, after: str = "") -> tuple[int, int, int]:
    """A number for each of depth, height and width."""
    depth, height, width = (options.integer(f"{before}{axis}{after}") for axis in "DHW")
    return depth, height, width


def _arranged(node: BoundOperator, index: int, permutation: tuple[int, ...]) -> Value | None:
    """The weights with their axes in the order of armpy's."""
    weights = node.input(index)
    if weights is None:
        return None
    name = f"{node.name}:weights"
    return node.network.add(Transpose(permutation), weights, name=name)


def _operation(
    node: BoundOperator, kind: type[Convolution3d | TransposeConvolution3d]
) -> Convolution3d | TransposeConvolution3d:
    """The operation that the options say."""
    options = node.options("Conv3DOptions")
    return kind(
        _steps(options, "Stride"),
        _steps(options, "Dilation", "Factor"),
        padding_of(options),
        fused_activation(options),
    )


def _convolution(node: BoundOperator) -> Sequence[Value]:
    operation = _operation(node, Convolution3d)
    weights = _arranged(node, 1, _OUTPUT_CHANNELS_FIRST)
    return node.layer(operation, node.input(0), weights, flat_bias(node, 2), *node.inputs[3:])


def _transpose_convolution(node: BoundOperator) -> Sequence[Value]:
    operation = _operation(node, TransposeConvolution3d)
    weights = _arranged(node, 1, _OUTPUT_BEFORE_INPUT)
    return node.layer(operation, node.input(2), weights, flat_bias(node, 3), node.input(0))


CONVERTERS: ConverterTable = {
    "CONV_3D": _convolution,
    "CONV_3D_TRANSPOSE": _transpose_convolution,
}
