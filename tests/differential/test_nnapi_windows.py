"""NNAPI's convolutions, FULLY_CONNECTED and poolings against real arithmetic, term by term."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from armpy_nnapi import FuseCode, OperandCode, OperationCode, PaddingCode
from tests.differential.nnapi_peers import (
    BOUNDS,
    FLOAT16,
    FLOAT32,
    FLOATS,
    IMAGE_TYPES,
    INT32,
    PER_CHANNEL,
    SIGNED,
    SYMMETRIC,
    UNSIGNED,
    Draw,
    Expected,
    Input,
    Instance,
    Reals,
    Scalar,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    is_quantized,
    names,
)

_O = OperationCode

WEIGHTED_TYPES = (
    (FLOAT32, FLOAT32),
    (FLOAT16, FLOAT16),
    (UNSIGNED, UNSIGNED),
    (UNSIGNED, PER_CHANNEL),
    (SIGNED, SIGNED),
    (SIGNED, PER_CHANNEL),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """How windows lie along one spatial axis."""

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def num_windows(self) -> int:
        """How many windows fit into the padded image."""
        extent = (self.window - 1) * self.dilation + 1
        return (self.size + self.before + self.after - extent) // self.stride + 1

    def cells(self, window: int) -> Iterator[tuple[int, int]]:
        """Positions in the window and in the image, of cells that are in the image."""
        for k in range(self.window):
            at = window * self.stride - self.before + k * self.dilation
            if 0 <= at < self.size:
                yield k, at


def same_padding(size: int, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """Padding with which each `stride` elements give one; the odd one goes after."""
    extent = (window - 1) * dilation + 1
    needed = max(((size + stride - 1) // stride - 1) * stride + extent - size, 0)
    return needed // 2, needed - needed // 2


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over an image, and the arguments that say so."""

    height: Axis
    width: Axis
    padding: list[Input]
    strides: list[Input]
    dilations: list[Input]
    fuse: FuseCode
    nchw: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Number of windows down and across."""
        return self.height.num_windows, self.width.num_windows

    def cells(self, y: int, x: int) -> Iterator[tuple[int, int, int, int]]:
        """Row and column in the window and in the image, of each cell of one window."""
        for i, row in self.height.cells(y):
            for j, column in self.width.cells(x):
                yield i, j, row, column

    @property
    def clamp(self) -> tuple[float, float]:
        """Limits of the fused activation."""
        return BOUNDS[self.fuse]


def windows(draw: Draw, *, dilated: bool) -> Windows:
    """Random windows of which at least one fits."""
    code = draw.pick((None, PaddingCode.SAME, PaddingCode.VALID))
    dilation = [draw.size(2) if dilated else 1 for _ in range(2)]
    axes = []
    for i in range(2):
        window, stride = draw.size(3), draw.size(3)
        extent = (window - 1) * dilation[i] + 1
        before, after = draw.size(extent - 1, 0), draw.size(extent - 1, 0)
        size = draw.size(extent + 3, extent)
        if code is PaddingCode.SAME:
            size = draw.size(6)
            before, after = same_padding(size, window, stride, dilation[i])
        elif code is PaddingCode.VALID:
            before, after = 0, 0
        axes.append(Axis(size, window, stride, dilation[i], before, after))
    down, across = axes
    sides = (across.before, across.after, down.before, down.after)
    padding: list[Input] = [integer(n) for n in sides] if code is None else [integer(code)]
    return Windows(
        down,
        across,
        padding,
        [integer(across.stride), integer(down.stride)],
        [integer(across.dilation), integer(down.dilation)],
        draw.pick(tuple(FuseCode)),
        draw.chance(),
    )


def trailing(draw: Draw, made: Windows) -> list[Input]:
    """Layout and dilation, sometimes left out where that means the same."""
    is_plain = made.height.dilation == made.width.dilation == 1
    if is_plain and draw.chance():
        return [] if not made.nchw and draw.chance() else [boolean(made.nchw)]
    return [boolean(made.nchw), *made.dilations]


def in_layout(source: Tensor, nchw: bool) -> Tensor:
    """An NHWC tensor in the layout that is asked for."""
    if not nchw:
        return source
    stored = np.ascontiguousarray(np.moveaxis(source.stored, 3, 1))
    return Tensor(source.code, stored, source.scale, source.zero_point)


def weights(draw: Draw, kind: OperandCode, shape: Sequence[int], channel_dim: int = 0) -> Tensor:
    """A filter."""
    if kind is not PER_CHANNEL:
        return draw.tensor(kind, shape, -1, 1)
    scales = tuple(float(np.float32(draw.number(0.004, 0.012))) for _ in range(shape[channel_dim]))
    stored = draw.tensor(SYMMETRIC, shape).stored
    return Tensor(kind, stored, 0.0, 0, scales, channel_dim)


def bias(draw: Draw, source: Tensor, filter_: Tensor, length: int) -> tuple[Tensor, Reals]:
    """A bias as it is stored, and the numbers that it stands for."""
    if not is_quantized(source.code):
        tensor = draw.tensor(source.code, (length,))
        return tensor, tensor.real
    scale = float(np.float32(source.scale) * np.float32(filter_.scale))
    scales = np.array(filter_.scales or (scale,) * length)
    steps = source.scale * scales if filter_.scales else scales
    stored = np.round(draw.rng.uniform(-3, 3, length) / steps).astype(np.int32)
    return Tensor(INT32, stored, scale), stored * steps


def weighted(
    draw: Draw, made: Reals, clamp: tuple[float, float], source: Tensor, nchw: bool = False
) -> Expected:
    """An output of sums of products, clamped, in the layout that is asked for."""
    real = np.clip(made, *clamp)
    return draw.output(source.code, np.moveaxis(real, 3, 1) if nchw else real, magnitude=1.0)


def convolve(made: Windows, image: Reals, filter_: Reals, offsets: Reals, groups: int = 1) -> Reals:
    """A convolution (n, h, w, o) by filters (o, h, w, i / groups)."""
    num_outputs, depth = filter_.shape[0], filter_.shape[3]
    result = np.empty((image.shape[0], *made.shape, num_outputs))
    for n, y, x, o in np.ndindex(*result.shape):
        first = o // (num_outputs // groups) * depth
        total = offsets[o]
        for i, j, row, column in made.cells(y, x):
            for c in range(depth):
                total += image[n, row, column, first + c] * filter_[o, i, j, c]
        result[n, y, x, o] = total
    return result


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "filter_kind"), WEIGHTED_TYPES, ids=names)
def test_conv_2d(kind: OperandCode, filter_kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        frame, depth, count = windows(draw, dilated=True), draw.size(3), draw.size(3)
        source = draw.tensor(kind, (draw.size(2), frame.height.size, frame.width.size, depth))
        kernel = (count, frame.height.window, frame.width.window, depth)
        filter_ = weights(draw, filter_kind, kernel)
        offsets, real_offsets = bias(draw, source, filter_, count)
        real = convolve(frame, source.real, filter_.real, real_offsets)
        inputs = [in_layout(source, frame.nchw), filter_, offsets, *frame.padding, *frame.strides]
        inputs += [integer(frame.fuse), *trailing(draw, frame)]
        return Instance(_O.CONV_2D, inputs, [weighted(draw, real, frame.clamp, source, frame.nchw)])

    check_instances(make)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "filter_kind"), WEIGHTED_TYPES, ids=names)
def test_grouped_conv_2d(kind: OperandCode, filter_kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        frame, depth, groups = windows(draw, dilated=False), draw.size(2), draw.size(3)
        count = groups * draw.size(2)
        shape = (draw.size(2), frame.height.size, frame.width.size, depth * groups)
        source = draw.tensor(kind, shape)
        kernel = (count, frame.height.window, frame.width.window, depth)
        filter_ = weights(draw, filter_kind, kernel)
        offsets, real_offsets = bias(draw, source, filter_, count)
        real = convolve(frame, source.real, filter_.real, real_offsets, groups)
        inputs = [in_layout(source, frame.nchw), filter_, offsets, *frame.padding, *frame.strides]
        inputs += [integer(groups), integer(frame.fuse), boolean(frame.nchw)]
        return Instance(
            _O.GROUPED_CONV_2D, inputs, [weighted(draw, real, frame.clamp, source, frame.nchw)]
        )

    check_instances(make)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "filter_kind"), WEIGHTED_TYPES, ids=names)
def test_depthwise_conv_2d(kind: OperandCode, filter_kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        frame, depth, multiplier = windows(draw, dilated=True), draw.size(3), draw.size(2)
        source = draw.tensor(kind, (draw.size(2), frame.height.size, frame.width.size, depth))
        kernel = (1, frame.height.window, frame.width.window, depth * multiplier)
        filter_ = weights(draw, filter_kind, kernel, 3)
        offsets, real_offsets = bias(draw, source, filter_, depth * multiplier)
        image, taps = source.real, filter_.real
        real = np.empty((source.shape[0], *frame.shape, depth * multiplier))
        for n, y, x, o in np.ndindex(*real.shape):
            real[n, y, x, o] = real_offsets[o] + sum(
                image[n, row, column, o // multiplier] * taps[0, i, j, o]
                for i, j, row, column in frame.cells(y, x)
            )
        inputs = [in_layout(source, frame.nchw), filter_, offsets, *frame.padding, *frame.strides]
        inputs += [integer(multiplier), integer(frame.fuse), *trailing(draw, frame)]
        return Instance(
            _O.DEPTHWISE_CONV_2D, inputs, [weighted(draw, real, frame.clamp, source, frame.nchw)]
        )

    check_instances(make)


def spread(
    image: Reals,
    filter_: Reals,
    strides: Sequence[int],
    before: Sequence[int],
    sizes: Sequence[int],
) -> Reals:
    """Each pixel times each filter (o, h, w, i), added up where the windows overlap."""
    result = np.zeros((image.shape[0], *sizes, filter_.shape[0]))
    for n, y, x in np.ndindex(*image.shape[:3]):
        for o, i, j in np.ndindex(*filter_.shape[:3]):
            row, column = y * strides[0] - before[0] + i, x * strides[1] - before[1] + j
            if 0 <= row < sizes[0] and 0 <= column < sizes[1]:
                result[n, row, column, o] += float(np.dot(image[n, y, x], filter_[o, i, j]))
    return result


def _transpose_axis(draw: Draw, code: PaddingCode | None) -> tuple[int, int, int, int, int, int]:
    """Size, window and stride of an axis, padding before and after, and the output's size."""
    window, stride = draw.size(4), draw.size(3)
    size = draw.size(4)
    if code is PaddingCode.SAME:
        wanted = size * stride - draw.size(stride - 1, 0)
        needed = (size - 1) * stride + window - wanted
        before = max(needed, 0) // 2
        return size, window, stride, before, needed - before, wanted
    full = (size - 1) * stride + window
    if code is PaddingCode.VALID:
        return size, window, stride, 0, 0, full
    before = draw.size(min(window, full) - 1, 0)
    after = draw.size(min(window, full - before) - 1, 0)
    return size, window, stride, before, after, full - before - after


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "filter_kind"), WEIGHTED_TYPES, ids=names)
def test_transpose_conv_2d(kind: OperandCode, filter_kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        code = draw.pick((None, PaddingCode.SAME, PaddingCode.VALID))
        down, across = _transpose_axis(draw, code), _transpose_axis(draw, code)
        batches, depth, count, nchw = draw.size(2), draw.size(3), draw.size(3), draw.chance()
        source = draw.tensor(kind, (batches, down[0], across[0], depth))
        filter_ = weights(draw, filter_kind, (count, down[1], across[1], depth))
        offsets, real_offsets = bias(draw, source, filter_, count)
        sizes = (down[5], across[5])
        strides, before = (down[2], across[2]), (down[3], across[3])
        real = spread(source.real, filter_.real, strides, before, sizes) + real_offsets
        shape = (batches, count, *sizes) if nchw else (batches, *sizes, count)
        inputs: list[Input] = [in_layout(source, nchw), filter_, offsets]
        if code is None:
            inputs += [integer(n) for n in (*across[3:5], *down[3:5])]
        else:
            inputs += [integers(shape), integer(code)]
        fuse = draw.pick(tuple(FuseCode))
        inputs += [integer(across[2]), integer(down[2]), integer(fuse), boolean(nchw)]
        return Instance(
            _O.TRANSPOSE_CONV_2D, inputs, [weighted(draw, real, BOUNDS[fuse], source, nchw)]
        )

    check_instances(make)


@pytest.mark.parametrize(
    ("kind", "filter_kind"), [pair for pair in WEIGHTED_TYPES if PER_CHANNEL not in pair], ids=names
)
def test_fully_connected(kind: OperandCode, filter_kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        depth, units, batches = draw.size(5), draw.size(4), draw.size(3)
        shape = draw.pick([(batches, depth), (2, batches, depth), (batches, 2, 1, depth)])
        source, filter_ = draw.tensor(kind, shape), weights(draw, filter_kind, (units, depth))
        offsets, real_offsets = bias(draw, source, filter_, units)
        vectors = source.real.reshape(-1, depth)
        real = np.empty((len(vectors), units))
        for b, u in np.ndindex(*real.shape):
            products = (
                float(x) * float(w) for x, w in zip(vectors[b], filter_.real[u], strict=True)
            )
            real[b, u] = sum(products, float(real_offsets[u]))
        fuse = draw.pick(tuple(FuseCode))
        output = draw.output(kind, np.clip(real, *BOUNDS[fuse]))
        return Instance(_O.FULLY_CONNECTED, [source, filter_, offsets, integer(fuse)], [output])

    check_instances(make)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _root_mean_square(values: list[float]) -> float:
    return math.sqrt(_mean([x * x for x in values]))


POOLINGS: dict[OperationCode, tuple[Callable[[list[float]], float], tuple[OperandCode, ...]]] = {
    _O.AVERAGE_POOL_2D: (_mean, IMAGE_TYPES),
    _O.L2_POOL_2D: (_root_mean_square, FLOATS),
    _O.MAX_POOL_2D: (max, IMAGE_TYPES),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "kind"), [(c, k) for c, (_, kinds) in POOLINGS.items() for k in kinds], ids=names
)
def test_pooling(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        frame, depth = windows(draw, dilated=False), draw.size(3)
        source = draw.tensor(kind, (draw.size(2), frame.height.size, frame.width.size, depth))
        real = np.empty((source.shape[0], *frame.shape, depth))
        for n, y, x, c in np.ndindex(*real.shape):
            cells = [float(source.real[n, h, w, c]) for _, _, h, w in frame.cells(y, x)]
            real[n, y, x, c] = POOLINGS[code][0](cells)
        real = np.clip(real, *frame.clamp)
        real = np.moveaxis(real, 3, 1) if frame.nchw else real
        output = Expected(kind, real, source.scale, source.zero_point)
        sizes: list[Scalar] = [integer(frame.width.window), integer(frame.height.window)]
        inputs = [in_layout(source, frame.nchw), *frame.padding, *frame.strides, *sizes]
        inputs += [integer(frame.fuse), *([boolean(True)] if frame.nchw else [])]
        return Instance(code, inputs, [output])

    check_instances(make)
