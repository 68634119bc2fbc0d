"""Operations on images: poolings, convolutions, resizing; and FULLY_CONNECTED."""

from __future__ import annotations

import math

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import OperandCode, OperationCode, PaddingCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation, Recipe
from armpy_nnapi.conformance.random_graphs.recipes.movement import layout

_C = OperationCode
_SIDES = (("width", "left", "right"), ("height", "top", "bottom"))


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """Sizes of an image tensor, whatever its layout."""

    batch: int
    height: int
    width: int
    channels: int
    nchw: bool

    def shape(self, channels: int) -> tuple[int, ...]:
        """The tensor's shape with another number of channels."""
        if self.nchw:
            return (self.batch, channels, self.height, self.width)
        return (self.batch, self.height, self.width, channels)

    def side(self, name: str) -> int:
        """Width or height."""
        return self.width if name == "width" else self.height


def image(call: RandomOperation, channels: int | None = None) -> ImageSizes:
    """Make up the input and its layout, with any number of channels or a given one."""
    nchw = layout(call)
    if channels is None:
        shape = call.data("input", ranks=(4,))
    else:
        sizes = ImageSizes(
            call.integer(1, 2), call.integer(1, 6), call.integer(1, 6), channels, nchw
        )
        shape = call.data("input", sizes.shape(channels))
    n, h, w, c = (shape[0], shape[2], shape[3], shape[1]) if nchw else shape
    return ImageSizes(n, h, w, c, nchw)


def window(call: RandomOperation, size: ImageSizes) -> tuple[int, int]:
    """Make up strides, dilations and padding for windows inside of an image.

    Returns
    -------
    tuple of int
        Height and width of the windows.
    """
    sides = {}
    call.scalar("padding", call.choose(*PaddingCode))
    for name, before, after in _SIDES:
        length = call.integer(1, min(4, size.side(name)))
        dilation = call.integer(1, 2) if call.has(f"dilation_{name}") else 1
        if (length - 1) * dilation + 1 > size.side(name):
            dilation = 1
        extent = (length - 1) * dilation + 1
        call.scalar(f"stride_{name}", call.integer(1, 3))
        call.scalar(f"dilation_{name}", dilation)
        call.scalar(f"filter_{name}", length)
        call.scalar(f"padding_{before}", call.integer(0, extent - 1))
        call.scalar(f"padding_{after}", call.integer(0, extent - 1))
        sides[name] = length
    call.scalar("activation", call.integer(0, 3))
    return sides["height"], sides["width"]


def pooling(call: RandomOperation) -> None:
    """Windows of an image."""
    window(call, image(call))


def weights(call: RandomOperation, shape: tuple[int, ...], channel_dim: int) -> None:
    """Make up filter, bias and output quantisation for a sum of products."""
    if call.code("filter") == OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        call.per_channel("filter", shape, channel_dim)
        scale, bias_scale = call.quant_of("input")[0], 0.0
    else:
        call.data("filter", shape)
        first, second = call.quant_of("input")[0], call.quant_of("filter")[0]
        scale = bias_scale = float(np.float32(first) * np.float32(second))
    limit = 2 if call.is_float("bias") else 2000
    count = (shape[channel_dim],)
    call.tensor("bias", count, low=-limit, high=limit, quant=(bias_scale, 0))
    if call.is_quantized("output"):
        terms = math.prod(shape) / shape[channel_dim]
        wide = scale * math.sqrt(terms) * call.real(10, 60)
        zero_point = call.quantization(call.code("output"))[1]
        call.output("output", wide if wide < 10 else call.real(0.1, 2), zero_point)


def convolution(call: RandomOperation) -> None:
    """An image, and filters as deep as it."""
    size = image(call)
    height, width = window(call, size)
    weights(call, (call.integer(1, 5), height, width, size.channels), 0)


def depthwise(call: RandomOperation) -> None:
    """An image, and filters for each of its channels."""
    size = image(call)
    multiplier = call.integer(1, 3)
    call.scalar("depth_multiplier", multiplier)
    weights(call, (1, *window(call, size), size.channels * multiplier), 3)


def grouped(call: RandomOperation) -> None:
    """An image, and filters for groups of its channels."""
    groups, depth = call.integer(1, 3), call.integer(1, 3)
    size = image(call, groups * depth)
    call.scalar("num_groups", groups)
    weights(call, (groups * call.integer(1, 3), *window(call, size), depth), 0)


def transpose_convolution(call: RandomOperation) -> None:
    """An image, filters, and an output size that the padding fits."""
    size = image(call)
    is_same = call.chance()
    call.scalar("padding", PaddingCode.SAME if is_same else PaddingCode.VALID)
    call.scalar("activation", call.integer(0, 3))
    lengths, outputs = {}, {}
    for name, before, after in _SIDES:
        length, stride = call.integer(1, 4), call.integer(1, 3)
        whole = (size.side(name) - 1) * stride + length
        first = call.integer(0, min(1, whole - 1))
        call.scalar(f"stride_{name}", stride)
        call.scalar(f"padding_{before}", first)
        call.scalar(f"padding_{after}", call.integer(0, min(2, whole - first - 1)))
        lengths[name] = length
        outputs[name] = size.side(name) * stride - call.integer(0, stride - 1) if is_same else whole
    depth = call.integer(1, 4)
    if call.has("output_shape"):
        wanted = ImageSizes(size.batch, outputs["height"], outputs["width"], depth, size.nchw)
        call.parameter("output_shape", wanted.shape(depth))
    weights(call, (depth, lengths["height"], lengths["width"], size.channels), 0)


def fully_connected(call: RandomOperation) -> None:
    """Vectors along the last axis, or along all but the first one."""
    shape = call.data("input", ranks=(2, 3, 4))
    depth = shape[-1] if call.chance() else math.prod(shape[1:])
    call.scalar("activation", call.integer(0, 3))
    weights(call, (call.integer(1, 6), depth), 0)


def resize(call: RandomOperation) -> None:
    """Another width and height, or factors that lead to them."""
    size = image(call)
    for name in ("width", "height"):
        wanted = call.integer(1, 8)
        factor = (wanted + 0.5) / size.side(name)
        call.scalar(name, factor if call.is_float(name) else wanted)
    align = call.chance(0.4)
    call.scalar("align_corners", align)
    call.scalar("half_pixel_centers", not align and call.chance())


RECIPES: dict[OperationCode, Recipe] = {
    **dict.fromkeys((_C.AVERAGE_POOL_2D, _C.L2_POOL_2D, _C.MAX_POOL_2D), pooling),
    _C.CONV_2D: convolution,
    _C.DEPTHWISE_CONV_2D: depthwise,
    _C.GROUPED_CONV_2D: grouped,
    _C.TRANSPOSE_CONV_2D: transpose_convolution,
    _C.FULLY_CONNECTED: fully_connected,
    **dict.fromkeys((_C.RESIZE_BILINEAR, _C.RESIZE_NEAREST_NEIGHBOR), resize),
}
