"""Fusion of a layer with those after it."""

from __future__ import annotations

import math

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, Value
from armpy.ops import Convolution2d, Convolution3d, FullyConnected
from armpy.types import DataType
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES

CONVOLUTIONS = (Convolution2d, Convolution3d)
"""Whose filters see windows, of all channels or of those of a group."""

Bounds = tuple[float | None, float | None]
"""Lowest and highest value of an output; None where it is not bounded."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """Fusion of a layer with those after it, computed together."""

    output: Value  # written in the end
    bounds: Bounds = (None, None)  # clamping of the output
    residual: Value | None = None  # added to the layer's output before it is clamped
    absorbed: tuple[Layer, ...] = ()  # layers after it that need no commands of their own

    def label(self, layer: Layer) -> str:
        """The layer's name with those of the layers that are computed together with it."""
        return " + ".join(member.name for member in (layer, *self.absorbed))


def float_bounds(bounds: Bounds) -> tuple[float, float]:
    """Lowest and highest float."""
    low, high = bounds
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high))


def is_fusing(layer: Layer) -> bool:
    """Return whether a layer's kernel can add a tensor to its result, and clamp."""
    operation = layer.operation
    is_convolution = isinstance(operation, CONVOLUTIONS)
    if not is_convolution and not isinstance(operation, FullyConnected):
        return False
    infos = [value.info for value in (*layer.inputs, *layer.outputs) if value is not None]
    sees_all = infos[0].known_shape[-1] == infos[1].known_shape[-1]
    if infos[0].data_type in QUANTIZED_TYPES:
        # A product of one vector has kernels of its own.
        is_image = infos[-1].num_elements > infos[1].known_shape[0]
        is_scaled = layer.output.info.data_type in QUANTIZED_TYPES
        return is_convolution and sees_all and is_image and is_scaled
    if any(info.data_type is not DataType.FLOAT32 for info in infos):
        return False
    return sees_all or not is_convolution
