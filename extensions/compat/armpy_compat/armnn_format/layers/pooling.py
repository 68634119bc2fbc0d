"""Layers that summarise windows of images and volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import DataLayout, ops
from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops import Operation, PoolingAlgorithm
from armpy_compat.armnn_format.layer import (
    IMAGE_LAYOUTS,
    VOLUME_LAYOUTS,
    ArmnnLayer,
    Converter,
    LayerTable,
)
from armpy_compat.armnn_format.layers.weighted import axes, image_pads, volume_pads

_ALGORITHMS: Mapping[int, PoolingAlgorithm] = {
    algorithm.value: algorithm for algorithm in PoolingAlgorithm
}
_ROUNDS_UP: Mapping[int, bool] = {0: False, 1: True}
_COUNTS_PADDING: Mapping[int, bool] = {0: True, 1: False}


@dataclass(frozen=True, slots=True)
class _PoolWindows:
    """Windows of a pooling layer along its spatial axes."""

    algorithm: PoolingAlgorithm
    size: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    layout: DataLayout
    counts_padding: bool
    """Whether the divisor of a mean counts elements of the padding."""


def _windows(
    layer: ArmnnLayer,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    pads: tuple[tuple[int, int], ...],
    layout: DataLayout,
) -> tuple[_PoolWindows, tuple[int, ...]]:
    """The windows, and how far each axis has to grow at its end for the last of them.

    Notes
    -----
    Strides of 0 are one window. Where sizes round up, a last window begins inside of the image and
    reaches over its padded end; what lies there never counts.
    """
    descriptor = layer.descriptor
    shape = layer.inputs[0].info.shape
    if shape is None or len(shape) != len(size) + 2:
        raise layer.error(
            "the input has the wrong rank",
            expected=str(len(size) + 2),
            actual=layer.inputs[0].info,
        )
    sizes = [shape[axis] for axis in layout.spatial_axes]
    if not any(stride):
        stride = tuple((dim or 1) + sum(pair) for dim, pair in zip(sizes, pads, strict=True))
    if min(size) < 1:
        raise layer.error("the window is not positive", expected="1 or more", actual=size)
    if min(stride) < 1:
        raise layer.error(
            "a stride is not positive", expected="1 or more, or 0 for all", actual=stride
        )
    extra = (0,) * len(size)
    if descriptor.choice("outputShapeRounding", _ROUNDS_UP, "OutputShapeRounding"):
        extra = tuple(
            0 if dim is None else _reach(dim, pair, window, step)
            for dim, pair, window, step in zip(sizes, pads, size, stride, strict=True)
        )
    windows = _PoolWindows(
        descriptor.choice("poolType", _ALGORITHMS, "PoolingAlgorithm"),
        size,
        stride,
        pads,
        layout,
        descriptor.choice("paddingMethod", _COUNTS_PADDING, "PaddingMethod"),
    )
    return windows, extra


def _reach(dim: int, pads: tuple[int, int], window: int, stride: int) -> int:
    """Elements that the last window of an axis reaches over the padded end."""
    padded = dim + sum(pads)
    count = -(-max(padded - window, 0) // stride) + 1
    if (count - 1) * stride >= dim + pads[0]:
        count -= 1
    return max((count - 1) * stride + window - padded, 0)


def _pooled(layer: ArmnnLayer, windows: _PoolWindows, extra: tuple[int, ...]) -> Sequence[Value]:
    """Add the pooling, in float32 where squares of integers are wanted."""
    layer.expect_inputs(1)
    value = layer.inputs[0]
    layer.expect_outputs(1)
    output = layer.output(value.info)
    in_floats = windows.algorithm is PoolingAlgorithm.L2 and value.info.data_type.is_quantized
    if in_floats:
        value = layer.decoded(value)
    pads = windows.pads
    if (
        windows.counts_padding
        and windows.algorithm is not PoolingAlgorithm.MAX
        and any(map(any, pads))
    ):
        value = layer.helper(ops.Pad(_around(windows.layout, pads)), value)
        pads = ((0, 0),) * len(pads)
    grown = tuple((low, high + more) for (low, high), more in zip(pads, extra, strict=True))
    operation = _operation(windows, grown)
    if in_floats:
        return (layer.encoded(layer.helper(operation, value), output),)
    return (layer.add(operation, value),)


def _around(layout: DataLayout, pads: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Padding of all axes from that of the spatial ones."""
    padding = dict(zip(layout.spatial_axes, pads, strict=True))
    return tuple(padding.get(axis, (0, 0)) for axis in range(len(pads) + 2))


def _operation(windows: _PoolWindows, pads: tuple[tuple[int, int], ...]) -> Operation:
    if len(windows.size) == 2:
        (height, width), (down, right) = windows.size, windows.stride
        return ops.Pooling2d(
            windows.algorithm, (height, width), (down, right), pads, data_layout=windows.layout
        )
    (depth, height, width), (back, down, right) = windows.size, windows.stride
    return ops.Pooling3d(
        windows.algorithm,
        (depth, height, width),
        (back, down, right),
        padding=pads,
        data_layout=windows.layout,
    )


def _pooling2d(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor: LayerTable = layer.descriptor
    layer.expect_inputs(1)
    size = axes(descriptor, "poolHeight", "poolWidth")
    stride = axes(descriptor, "strideY", "strideX")
    pads = image_pads(descriptor)
    return _pooled(layer, *_windows(layer, size, stride, pads, layer.layout(IMAGE_LAYOUTS)))


def _pooling3d(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor: LayerTable = layer.descriptor
    layer.expect_inputs(1)
    size = axes(descriptor, "poolDepth", "poolHeight", "poolWidth")
    stride = axes(descriptor, "strideZ", "strideY", "strideX")
    pads = volume_pads(descriptor)
    layout = layer.layout({**VOLUME_LAYOUTS, 0: DataLayout.NDHWC})
    return _pooled(layer, *_windows(layer, size, stride, pads, layout))


CONVERTERS: Mapping[str, Converter] = {"Pooling2d": _pooling2d, "Pooling3d": _pooling3d}
