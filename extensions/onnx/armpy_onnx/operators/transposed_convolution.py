"""The operator that convolves against the stride."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.movement import Pad, ReverseV2
from armpy.ops.slicing import Slice
from armpy.ops.transpose_convolution import TransposeConvolution2d, TransposeConvolution3d
from armpy_onnx.blocks import reshaped, transposed
from armpy_onnx.images import (
    WindowAttributes,
    auto_pad,
    channels_first,
    channels_last,
    explicit_pads,
    lifted,
    lifted_pads,
    per_axis,
    spatial_sizes,
    split_pads,
    with_two_axes,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.convolution import convolve_last


def _conv_transpose(node: Node) -> Value:
    sizes = spatial_sizes(node)
    groups = _check_groups(node)
    windows, out_sizes = _windows(node, sizes)
    image = channels_last(node, node.value(0))
    befores = [before for before, _ in windows.pads]
    is_plain = groups == 1 and max(windows.dilation) == 1
    if min(befores) >= 0 and (is_plain or len(sizes) == 3):
        spread_image = _spread(node, image, windows, out_sizes, groups)
    else:
        spread_image = _convolved(node, image, windows, out_sizes, groups)
    return channels_first(node, spread_image, len(sizes))


def _check_groups(node: Node) -> int:
    """The attribute ``group``, which the input's channels split into."""
    (_, channels, *rest), weights = node.shape(0), node.shape(1)
    if len(weights) != len(rest) + 2:
        raise node.error(
            "the weights have the wrong rank", expected=f"rank {len(rest) + 2}", actual=weights
        )
    groups = node.integer("group", 1)
    if groups < 1 or channels % groups or weights[0] != channels or min(weights) < 1:
        raise node.error(
            "the weights' channels, or the groups, are not those of the image",
            expected=f"weights of {channels} channels, a multiple of {groups} groups",
            actual=weights,
        )
    return groups


def _windows(node: Node, sizes: Sequence[int]) -> tuple[WindowAttributes, tuple[int, ...]]:
    """Windows over the output, with its cropped edges, and the output's sizes."""
    rank = len(sizes)
    kernel = node.shape(1)[2:]
    if per_axis(node, "kernel_shape", rank, 1, kernel) != kernel:
        raise node.error(
            "the attribute 'kernel_shape' is not the weights'",
            expected=str(kernel),
            actual=node.attribute("kernel_shape"),
        )
    stride = per_axis(node, "strides", rank, 1, (1,) * rank)
    dilation = per_axis(node, "dilations", rank, 1, (1,) * rank)
    extra = per_axis(node, "output_padding", rank, 0, (0,) * rank)
    windows = WindowAttributes(kernel, stride, dilation, ((0, 0),) * rank)
    reach = [
        (size - 1) * step + extent + more
        for size, step, extent, more in zip(sizes, stride, windows.extents, extra, strict=True)
    ]
    mode = auto_pad(node)
    wanted = _output_sizes(node, sizes, stride, mode)
    if wanted is None:
        pads = explicit_pads(node, rank) if mode == "NOTSET" else windows.pads
        wanted = tuple(all_ - sum(pair) for all_, pair in zip(reach, pads, strict=True))
    else:
        pads = tuple(
            split_pads(all_ - size, more_before=mode != "SAME_UPPER")
            for all_, size in zip(reach, wanted, strict=True)
        )
    if min(wanted) < 1:
        raise node.error("nothing is left of the output", expected="1 or more", actual=wanted)
    return windows.with_pads(pads), wanted


def _output_sizes(
    node: Node, sizes: Sequence[int], stride: Sequence[int], mode: str
) -> tuple[int, ...] | None:
    """Sizes of the output where they are given, and padding follows from them."""
    sizes_given = node.integers("output_shape", ())
    if sizes_given:
        sizes_given = sizes_given[2:] if len(sizes_given) == len(sizes) + 2 else sizes_given
        if len(sizes_given) != len(sizes):
            raise node.error(
                "the attribute 'output_shape' has the wrong length", actual=sizes_given
            )
        return sizes_given
    if mode.startswith("SAME"):
        return tuple(size * step for size, step in zip(sizes, stride, strict=True))
    return None


def _spread(
    node: Node,
    image: Value,
    windows: WindowAttributes,
    out_sizes: Sequence[int],
    groups: int,
) -> Value:
    """Spread every element over a window; where the windows end does not matter."""
    weights = with_two_axes(node, _regrouped(node, windows, groups))
    filters, rank = weights.info.known_shape[0], len(weights.info.known_shape)
    rows = transposed(node, weights, (0, *range(2, rank), 1))
    stride = lifted(windows.stride, 1)
    pads = lifted_pads(tuple((before, 0) for before, _ in windows.pads))
    shape = (image.info.known_shape[0], *lifted(out_sizes, 1), filters)
    if len(stride) == 3:  # so are all others
        volume = TransposeConvolution3d(
            stride,
            windows.dilation,  # type: ignore[arg-type]
            pads,
            output_shape=shape,
        )
        return node.layer(volume, image, rows, node.input(2))
    operation = TransposeConvolution2d(stride, pads, output_shape=shape)  # type: ignore[arg-type]
    return node.layer(operation, image, rows, node.input(2))


def _convolved(
    node: Node,
    image: Value,
    windows: WindowAttributes,
    out_sizes: Sequence[int],
    groups: int,
) -> Value:
    """Convolve the image with zeros between its elements with the mirrored weights."""
    spread = _with_gaps(node, image, lifted(windows.stride, 1))
    lengths = spread.info.known_shape[-1 - len(windows.kernel) : -1]
    pads = []
    for axis, (before, _) in enumerate(windows.pads):
        reach = windows.extents[axis] - 1
        front = reach - before
        pads.append((front, out_sizes[axis] + reach - lengths[axis] - front))
    spread = _cut(node, spread, lifted_pads(tuple(pads)))
    weights = _regrouped(node, windows, groups)
    axes = tuple(range(2, len(weights.info.known_shape)))
    weights = node.layer(ReverseV2(axes), weights)
    plain = WindowAttributes(
        windows.kernel,
        (1,) * len(windows.kernel),
        windows.dilation,
        tuple((max(before, 0), max(after, 0)) for before, after in pads),
    )
    return convolve_last(node, spread, weights, node.input(2), plain, groups)


def _regrouped(node: Node, windows: WindowAttributes, groups: int) -> Value:
    """The weights as ``Conv`` has them: (filters, channels / groups, ...)."""
    weights = node.value(1)
    channels, per_group = weights.info.known_shape[:2]
    kernel = windows.kernel
    split = reshaped(node, weights, (groups, channels // groups, per_group, *kernel))
    swapped = transposed(node, split, (0, 2, 1, *range(3, 3 + len(kernel))))
    return reshaped(node, swapped, (groups * per_group, channels // groups, *kernel))


def _with_gaps(node: Node, image: Value, stride: Sequence[int]) -> Value:
    """An image with its channels last, and zeros after every element."""
    if max(stride) == 1:
        return image
    batch, *sizes, channels = image.info.known_shape
    split = reshaped(node, image, (batch, *(n for size in sizes for n in (size, 1)), channels))
    gaps = [pair for step in stride for pair in ((0, 0), (0, step - 1))]
    spread = node.layer(Pad(((0, 0), *gaps, (0, 0))), split)
    longer = (size * step for size, step in zip(sizes, stride, strict=True))
    return reshaped(node, spread, (batch, *longer, channels))


def _cut(node: Node, image: Value, pads: Sequence[tuple[int, int]]) -> Value:
    """An image without what negative padding takes off its ends."""
    if min(min(pair) for pair in pads) >= 0:
        return image
    batch, *sizes, channels = image.info.known_shape
    begins = [max(-before, 0) for before, _ in pads]
    rest = [
        size - begin - max(-after, 0)
        for size, begin, (_, after) in zip(sizes, begins, pads, strict=True)
    ]
    if math.prod(max(size, 0) for size in rest) == 0:
        raise node.error("nothing is left of the input within the output", actual=sizes)
    return node.layer(Slice((0, *begins, 0), (batch, *rest, channels)), image)


OPERATORS: OperatorTable = {
    "ConvTranspose": Operator(_conv_transpose),
}
