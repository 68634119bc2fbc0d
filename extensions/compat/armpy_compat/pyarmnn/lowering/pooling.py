"""Layers that summarise windows of images or volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import ops
from armpy.graph import Value
from armpy.types import DataLayout
from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering

_AXES: Mapping[str, tuple[str, str, str, str]] = {
    "z": ("m_PadFront", "m_PadBack", "m_PoolDepth", "m_StrideZ"),
    "y": ("m_PadTop", "m_PadBottom", "m_PoolHeight", "m_StrideY"),
    "x": ("m_PadLeft", "m_PadRight", "m_PoolWidth", "m_StrideX"),
}
"""Members of the descriptor for each spatial axis: padding before and after, window, stride."""


def _pooled(lowered: LoweredLayer, axes: str) -> Sequence[Value]:
    """Pooling along spatial axes, the outermost first."""
    d = lowered.descriptor
    layout = DataLayout(d.m_DataLayout)
    algorithm = ops.PoolingAlgorithm(d.m_PoolType)
    source = lowered.inputs[0]
    shape = source.info.known_shape
    members = [[getattr(d, member) for member in _AXES[axis]] for axis in axes]
    explicit = [(before, after) for before, after, _, _ in members]
    # IgnoreValue counts the padding as zeros in means, and not at all in maxima.
    counts_padding = (
        d.m_PaddingMethod == constants.PaddingMethod_IgnoreValue
        and algorithm is not ops.PoolingAlgorithm.MAX
        and any(before or after for before, after in explicit)
    )
    if counts_padding:
        pads = [(0, 0)] * len(shape)
        for axis, pair in zip(layout.spatial_axes, explicit, strict=True):
            pads[axis] = pair
        source = lowered.add(ops.Pad(tuple(pads)), source)
        shape = source.info.known_shape
        explicit = [(0, 0)] * len(explicit)
    if d.m_OutputShapeRounding == constants.OutputShapeRounding_Ceiling:
        # Windows that begin inside go beyond the end, where elements do not count.
        for index, axis in enumerate(layout.spatial_axes):
            (before, after), (_, _, window, stride) = explicit[index], members[index]
            rest = (shape[axis] + before + after - window) % max(stride, 1)
            explicit[index] = (before, after + (stride - rest if rest else 0))
    kind = ops.Pooling2d if len(axes) == 2 else ops.Pooling3d
    operation = kind(
        algorithm=algorithm,
        pool_size=tuple(window for _, _, window, _ in members),
        stride=tuple(stride for _, _, _, stride in members),
        padding=tuple(explicit),
        data_layout=layout,
    )
    return lowered.result(operation, source)


def _pooling2d(lowered: LoweredLayer) -> Sequence[Value]:
    return _pooled(lowered, "yx")


def _pooling3d(lowered: LoweredLayer) -> Sequence[Value]:
    return _pooled(lowered, "zyx")


POOLING: Mapping[str, Lowering] = {"Pooling2d": _pooling2d, "Pooling3d": _pooling3d}
"""How layers that summarise windows are made, by kind."""
