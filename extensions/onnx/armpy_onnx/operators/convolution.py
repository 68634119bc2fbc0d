"""Operators that convolve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.convolution import Convolution2d, Convolution3d, DepthwiseConvolution2d
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.movement import Pad
from armpy_onnx.blocks import binary, joined, taken, transposed
from armpy_onnx.images import (
    WindowAttributes,
    channels_first,
    channels_last,
    lifted,
    spatial_sizes,
    spec_of_pads,
    window_attributes,
    with_two_axes,
)
from armpy_onnx.node import Node, Operator, OperatorTable


def _conv(node: Node) -> Value:
    return convolved(node, node.value(0), node.value(1), node.input(2))


def convolved(node: Node, image: Value, weights: Value, bias: Value | None) -> Value:
    """A convolution with a node's attributes; operands as ONNX's ``Conv`` has them."""
    sizes = spatial_sizes(node)
    windows = window_attributes(node, sizes, weights.info.known_shape[2:])
    groups = check_groups(node, image, weights)
    result = convolve_last(node, channels_last(node, image), weights, bias, windows, groups)
    return channels_first(node, result, len(sizes))


def check_groups(node: Node, image: Value, weights: Value) -> int:
    """The attribute ``group``, which channels and filters split into."""
    channels, (filters, depth, *_) = image.info.known_shape[1], weights.info.known_shape
    groups = node.integer("group", 1)
    if groups < 1 or depth < 1 or channels != depth * groups or filters % groups:
        raise node.error(
            "channels and filters do not split into the groups",
            expected=f"{channels} channels and a multiple of the groups as filters",
            actual=f"{groups} groups with {depth} channels each, {filters} filters",
        )
    return groups


def convolve_last(
    node: Node,
    image: Value,
    weights: Value,
    bias: Value | None,
    windows: WindowAttributes,
    groups: int,
) -> Value:
    """Convolve an image that has its channels last with ONNX's weights.

    Notes
    -----
    image (n, h, w, i), of a line (n, 1, w, i); weights (o, i / groups, h, w); windows as the
    file writes them.
    """
    stride, dilation = lifted(windows.stride, 1), lifted(windows.dilation, 1)
    pads = spec_of_pads(windows.pads)
    filters = with_two_axes(node, weights)
    # The numbers of axes are those of the windows.
    if len(stride) == 3:
        rows = transposed(node, filters, (0, 2, 3, 4, 1))
        return node.layer(Convolution3d(stride, dilation, pads), image, rows, bias)  # type: ignore[arg-type]
    if 1 < groups == image.info.known_shape[-1]:
        depthwise = transposed(node, filters, (1, 2, 3, 0))
        return node.layer(DepthwiseConvolution2d(stride, dilation, pads), image, depthwise, bias)  # type: ignore[arg-type]
    rows = transposed(node, filters, (0, 2, 3, 1))
    return node.layer(Convolution2d(stride, dilation, pads), image, rows, bias)  # type: ignore[arg-type]


def _fused_conv(node: Node) -> Value:
    sums = convolved(node, node.value(0), node.value(1), node.input(2))
    if node.has(3):
        sums = binary(node, BinaryOperation.ADD, sums, node.value(3))
    return activated(
        node, sums, [float(number) for number in node.attribute("activation_params", ())]
    )


def activated(node: Node, value: Value, numbers: Sequence[float]) -> Value:
    """Return the function that ONNX Runtime has fused into a node, with its parameters."""
    count, functions = node.choice("activation", "", _FUSED)
    if len(numbers) < count:
        raise node.error(
            "the activation lacks parameters", expected=f"{count}", actual=f"{len(numbers)}"
        )
    for activation in functions(numbers):
        value = node.layer(activation, value)
    return value


_F = ActivationFunction
_FUSED: Mapping[str, tuple[int, Callable[[Sequence[float]], Sequence[Activation]]]] = {
    "": (0, lambda _: ()),
    "Clip": (2, lambda p: [Activation(_F.BOUNDED_RELU, p[1], p[0])]),
    "HardSigmoid": (
        2,
        lambda p: [Activation(_F.LINEAR, p[0], p[1]), Activation(_F.BOUNDED_RELU, 1.0, 0.0)],
    ),
    "LeakyRelu": (1, lambda p: [Activation(_F.LEAKY_RELU, p[0])]),
    "Relu": (0, lambda _: [Activation(_F.RELU)]),
    "Sigmoid": (0, lambda _: [Activation(_F.SIGMOID)]),
    "Tanh": (0, lambda _: [Activation(_F.TANH, 1.0, 1.0)]),
}
"""Activations that ONNX Runtime fuses into convolutions: how many parameters, and the layers."""


def _line_shape(node: Node) -> tuple[int, ...]:
    """Shape of the first input, which has one spatial axis."""
    if node.rank(0) != 3:
        raise node.error("the input has the wrong rank", expected="rank 3", actual=node.shape(0))
    return node.shape(0)


def _causal_conv(node: Node) -> tuple[Value, ...]:
    line, weights = node.value(0), node.value(1)
    channels, shape = _line_shape(node)[1], weights.info.known_shape
    kernel = math.prod(shape[2:])
    if shape != (channels, 1, kernel) or kernel < 1:
        raise node.error(
            "the weights have the wrong shape",
            expected=f"({channels}, 1, k)",
            actual=shape,
        )
    if node.has(3):
        extended = joined(node, [node.value(3), line], 2)
    else:
        extended = node.layer(Pad(((0, 0), (0, 0), (kernel - 1, 0))), line)
    windows = WindowAttributes((kernel,), (1,), (1,), ((0, 0),))
    convolved_line = convolve_last(
        node, channels_last(node, extended), weights, node.input(2), windows, channels
    )
    convolved_line = channels_first(node, convolved_line, 1)
    if node.choice("activation", "none", {"none": False, "silu": True, "swish": True}):
        gate = node.layer(Activation(ActivationFunction.SIGMOID), convolved_line)
        convolved_line = binary(node, BinaryOperation.MUL, convolved_line, gate)
    length = extended.info.known_shape[2]
    return convolved_line, taken(node, extended, 2, length - kernel + 1, length)


OPERATORS: OperatorTable = {
    "CausalConvWithState": Operator(_causal_conv, rounds_once=True),
    "Conv": Operator(_conv),
    "com.microsoft.FusedConv": Operator(_fused_conv, rounds_once=True),
}
