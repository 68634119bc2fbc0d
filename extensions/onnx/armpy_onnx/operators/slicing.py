"""Operators that put tensors together, cut them apart, and add elements around them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from armpy.graph import Value
from armpy.ops.blocks import DepthToSpace, SpaceToDepth
from armpy.ops.joining import Concat
from armpy.ops.movement import ChannelShuffle, Pad, PaddingMode
from armpy.ops.operation import require
from armpy.ops.slicing import Slice, Splitter
from armpy.ops.strided_slicing import StridedSlice
from armpy.types import DataType
from armpy_onnx.blocks import check_table, gathered, transposed
from armpy_onnx.node import Node, Operator, OperatorTable


def _concat(node: Node) -> Value:
    axis = node.integer("axis", 1 if node.version < 4 else None)
    if len(node.values) == 1:
        return node.value(0)
    return node.layer(Concat(axis), *node.values)


def _split(node: Node) -> tuple[Value, ...]:
    shape, count = node.shape(0), node.data.num_outputs
    axis = node.axis(node.integer("axis", 0), len(shape))
    sizes: Sequence[int]
    if node.has(1):
        sizes = node.ints(1)
    elif node.attribute("split") is not None:
        sizes = node.integers("split")
    else:
        sizes = _equal_parts(shape[axis], node.integer("num_outputs", count), count)
    require(
        len(sizes) >= count,
        "there are fewer parts than outputs",
        expected=f"{count} sizes",
        actual=str(sizes),
    )
    return node.layers(Splitter(axis=axis, sizes=tuple(sizes)), [node.value(0)])


def _equal_parts(size: int, count: int, used: int) -> Sequence[int]:
    """Sizes of the parts that are used, and of the rest; the last part may be smaller."""
    require(
        count >= used,
        "there are fewer parts than outputs",
        expected=f"{used} or more",
        actual=count,
    )
    part = -(-size // count)
    ends = [min(number * part, size) for number in range(used + 1)]
    return [*(end - begin for begin, end in pairwise(ends)), size - ends[-1]]


def _slice(node: Node) -> Value:
    rank = node.rank(0)
    if node.version < 10:
        starts, ends = node.integers("starts"), node.integers("ends")
        axes = node.axes(rank)
        steps: Sequence[int] = (1,) * len(starts)
    else:
        starts, ends = node.ints(1), node.ints(2)
        axes = node.axes(rank, index=3)
        steps = node.ints(4) if node.has(4) else (1,) * len(starts)
    return sliced(node, starts, ends, axes, steps)


def sliced(
    node: Node,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int],
) -> Value:
    """Ranges of the input's axes; of the first ones if none are named."""
    rank = node.rank(0)
    if axes is None:
        axes = tuple(range(len(starts)))
    require(
        len(starts) == len(ends) == len(steps) == len(axes) == len(set(axes))
        and max(axes, default=-1) < rank,
        "starts, ends, axes and steps differ in length, or an axis is repeated or missing",
        expected=f"one of each per axis, at most {rank}",
        actual=f"{starts}, {ends}, {axes}, {steps}",
    )
    require(0 not in steps, "a step is 0", actual=str(steps))
    ranges = {
        axis: slice(*numbers) for axis, *numbers in zip(axes, starts, ends, steps, strict=True)
    }
    return _sliced(node, node.value(0), ranges)


def _sliced(node: Node, value: Value, ranges: dict[int, slice]) -> Value:
    """Ranges of a tensor's axes, as Python counts them."""
    shape = value.info.known_shape
    parts = [_taken(dim, ranges.get(axis, slice(None))) for axis, dim in enumerate(shape)]
    begins, ends, steps = zip(*parts, strict=True) if parts else ((), (), ())
    if all(step == 1 for step in steps):
        size = tuple(max(end - begin, 0) for begin, end in zip(begins, ends, strict=True))
        return value if size == shape else node.layer(Slice(begins, size), value)
    # A stop in front of the first element is not -1, which is the last one.
    stops = tuple(end if end >= 0 else -dim - 1 for end, dim in zip(ends, shape, strict=True))
    return node.layer(StridedSlice(begins, stops, steps), value)


def _taken(dim: int, part: slice) -> tuple[int, int, int]:
    """Begin, end and step of a range of an axis; `dim` may be traced."""
    if part.step is not None and part.step < 0:
        steps = range(dim)[part]
        return steps.start, steps.stop, steps.step
    begin, end = part.start, part.stop
    return (
        0 if begin is None else _within(begin, dim),
        dim if end is None else _within(end, dim),
        part.step or 1,
    )


def _within(position: int, dim: int) -> int:
    """A position from 0 to `dim`, as Python counts from the end and cuts."""
    return min(max(position + dim if position < 0 else position, 0), dim)


_MODES = {
    "constant": PaddingMode.CONSTANT,
    "reflect": PaddingMode.REFLECT,
    "edge": PaddingMode.EDGE,
    "wrap": PaddingMode.WRAP,
}


def _pad(node: Node) -> Value:
    value, rank = node.value(0), node.rank(0)
    fill: Value | None = None
    if node.version >= 11:
        amounts, fill = node.ints(1), node.input(2)
    else:
        amounts = node.integers("paddings" if node.version < 2 else "pads")
        fill = node.like(value, node.real("value", 0.0))
    axes = node.axes(rank, index=3)
    axes = tuple(range(rank)) if axes is None else axes
    require(
        len(amounts) == 2 * len(axes),
        "the number of pads is wrong",
        expected=f"{2 * len(axes)}, two per axis",
        actual=len(amounts),
    )
    pads = [(0, 0)] * rank
    for axis, before, after in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        pads[axis] = (before, after)
    mode = node.text("mode", "constant")
    if mode not in _MODES:
        raise node.error(
            "the attribute 'mode' has an unknown value", expected=", ".join(_MODES), actual=mode
        )
    # Negative numbers take elements away.
    crops = {
        axis: slice(max(-before, 0), dim - max(-after, 0))
        for axis, (dim, (before, after)) in enumerate(zip(node.shape(0), pads, strict=True))
        if min(before, after) < 0
    }
    if crops:
        require(
            all(part.start <= part.stop for part in crops.values()),
            "more is taken away than there is",
            actual=str(amounts),
        )
        value = _sliced(node, value, crops)
    added = [(max(before, 0), max(after, 0)) for before, after in pads]
    if mode == "reflect":
        for axis, (dim, pair) in enumerate(zip(value.info.known_shape, added, strict=True)):
            if max(pair) >= dim > 0:
                value = _reflected(node, value, axis, pair)
                added[axis] = (0, 0)
    if not any(map(any, added)):
        return value
    padding = Pad(tuple(added), padding_mode=_MODES[mode])
    if padding.padding_mode is PaddingMode.CONSTANT:
        return node.layer(padding, value, fill)
    return node.layer(padding, value)


def _reflected(node: Node, value: Value, axis: int, pair: tuple[int, int]) -> Value:
    """A value mirrored along an axis by more than it has: to and fro, as NumPy and ONNX do."""
    count = value.info.known_shape[axis]
    size = count + sum(pair)
    check_table(node, (size,))
    indices = np.pad(np.arange(count), pair, "reflect")
    return gathered(node, value, node.constant(indices, DataType.SIGNED64), axis)


def _center_crop_pad(node: Node) -> Value:
    value, shape = node.value(0), list(node.shape(0))
    axes = node.axes(len(shape))
    axes = tuple(range(len(shape))) if axes is None else axes
    target = node.ints(1)
    require(
        len(target) == len(axes),
        "the target shape does not have one size per axis",
        expected=str(len(axes)),
        actual=str(target),
    )
    require(
        min(target, default=0) >= 0, "a size of the target shape is negative", actual=str(target)
    )
    crops, pads = {}, [(0, 0)] * len(shape)
    for axis, size in zip(axes, target, strict=True):
        start = abs(shape[axis] - size) // 2
        if size < shape[axis]:
            crops[axis] = slice(start, start + size)
        else:
            pads[axis] = (start, size - shape[axis] - start)
    value = _sliced(node, value, crops)
    return node.layer(Pad(tuple(pads)), value) if any(map(any, pads)) else value


def _depth_to_space(node: Node) -> Value:
    block, value = node.integer("blocksize"), _to_nhwc(node)
    if _channels_are_outermost(node):
        channels = node.shape(0)[1]
        require(
            block >= 1 and channels % (block * block) == 0,
            "the channels do not split into blocks",
            expected=f"a multiple of {block * block}",
            actual=channels,
        )
        value = node.layer(ChannelShuffle(channels // (block * block) or 1), value)
    return transposed(node, node.layer(DepthToSpace(block), value), _TO_NCHW)


def _space_to_depth(node: Node) -> Value:
    block = node.integer("blocksize")
    value = node.layer(SpaceToDepth(block), _to_nhwc(node))
    if _channels_are_outermost(node):
        value = node.layer(ChannelShuffle(block * block), value)
    return transposed(node, value, _TO_NCHW)


def _channels_are_outermost(node: Node) -> bool:
    """Return whether image channels are outermost in the deep tensor's channels, or innermost."""
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.error(
            "the attribute 'mode' has an unknown value", expected="DCR or CRD", actual=mode
        )
    return mode == "CRD"


_TO_NCHW = (0, 3, 1, 2)


def _to_nhwc(node: Node) -> Value:
    """The input image with its channels last."""
    require(node.rank(0) == 4, "the input is not an image", expected="rank 4", actual=node.shape(0))
    return transposed(node, node.value(0), (0, 2, 3, 1))


OPERATORS: OperatorTable = {
    "Concat": Operator(_concat, needs_shapes=False),
    "Split": Operator(_split, decides=(1,)),
    "Slice": Operator(_slice, decides=(1, 2, 3, 4)),
    "Pad": Operator(_pad, decides=(1, 3)),
    "CenterCropPad": Operator(_center_crop_pad, decides=(1,)),
    "DepthToSpace": Operator(_depth_to_space),
    "SpaceToDepth": Operator(_space_to_depth),
}
