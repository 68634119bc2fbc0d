"""Wrong values of convolutions, pooling, resizing, and blocks of images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armpy.ops import (
    Convolution2d,
    Padding,
)
from armpy.types import DataLayout

from .planting import Planted
from .shapes import Call
from .wrong_values import (
    Answer,
    Condition,
    attribute,
    has_bias,
    has_channels_first,
    is_activated,
    is_dilated,
    is_explicitly_padded,
    recomputed,
    shape_of,
    source,
    wrong,
    wrong_forms,
)

# --- Convolutions


def bias_of_first_group(operation: Convolution2d, call: Call) -> Answer:
    """Every group of a grouped convolution gets the first group's bias."""
    channels = source(call).shape[-1 if operation.data_layout is DataLayout.NHWC else 1]
    depth = source(call, 1).shape[-1]
    if len(call.inputs) < 3 or call.inputs[2] is None or not 0 < depth < channels:
        return None
    groups = channels // depth
    bias = source(call, 2)
    return recomputed(call, inputs=(*call.inputs[:2], np.tile(bias[: len(bias) // groups], groups)))


# --- Forms


_WINDOWS: Mapping[str, tuple[str, Condition]] = {
    "conv-uneven-padding-strided": (
        "Convolution2d",
        lambda c: is_explicitly_padded(c) and max(attribute(c, "stride")) > 1,
    ),
    "depthwise-dilation-channels-first": (
        "DepthwiseConvolution2d",
        lambda c: is_dilated(c) and has_channels_first(c),
    ),
    "transposed-uneven-padding-first": (
        "TransposeConvolution2d",
        lambda c: is_explicitly_padded(c) and has_channels_first(c),
    ),
    "transposed-stride-beyond-kernel": (
        "TransposeConvolution2d",
        lambda c: attribute(c, "stride")[1] > shape_of(c, 1)[2] and not has_bias(c),
    ),
    "conv3d-depth-stride-first": (
        "Convolution3d",
        lambda c: attribute(c, "stride")[0] > 1 and has_channels_first(c),
    ),
    "conv3d-dilation-clamped": ("Convolution3d", lambda c: is_dilated(c) and is_activated(c)),
    "average-same-channels-first": (
        "Pooling2d",
        lambda c: (
            attribute(c, "padding") is Padding.SAME
            and has_channels_first(c)
            and attribute(c, "algorithm").name == "AVERAGE"
            and min(attribute(c, "stride")) == 1 < max(attribute(c, "stride"))
        ),
    ),
    "l2-pool-channels-first": (
        "Pooling2d",
        lambda c: (
            attribute(c, "algorithm").name == "L2"
            and has_channels_first(c)
            and is_explicitly_padded(c)
        ),
    ),
    "pool3d-dilated-strided": (
        "Pooling3d",
        lambda c: is_dilated(c) and max(attribute(c, "stride")) > 1,
    ),
    "pool-with-indices-dilated-batch": (
        "MaxPoolWithIndices",
        lambda c: is_dilated(c) and shape_of(c)[0] > 1,
    ),
    "resize-half-pixels-channels-first": (
        "Resize",
        lambda c: attribute(c, "half_pixel_centers") and has_channels_first(c),
    ),
    "space-to-batch-uneven-block-first": (
        "SpaceToBatchNd",
        lambda c: len(set(attribute(c, "block_shape"))) > 1 and has_channels_first(c),
    ),
    "batch-to-space-crop-uneven-block": (
        "BatchToSpaceNd",
        lambda c: len(set(attribute(c, "block_shape"))) > 1 and np.any(attribute(c, "crops")),
    ),
    "depth-to-space-3-first": (
        "DepthToSpace",
        lambda c: attribute(c, "block_size") == 3 and has_channels_first(c),
    ),
}


WINDOW_FAULTS: dict[str, Planted] = {
    "blind-window/groups": wrong(Convolution2d, bias_of_first_group),
    **wrong_forms(_WINDOWS, "windows"),
}
"""By class and name."""
