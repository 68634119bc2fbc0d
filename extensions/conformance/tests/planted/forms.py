"""Faults of one form only: wrong attributes, operands, orders, counts, roundings, and graphs.

Each fault is a mistake of a kernel or a compiler for one form of one operation, of the kinds that
vendors' bug lists have: the other forms are right. The backends that they are planted in take
the operation in every type, or in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any  # attributes of any operation

import numpy as np

from armpy.backend import (
    ReasonCode,
    Support,
)
from armpy.ops import (
    FusedActivation,
    Padding,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .faults import Call, Fault, Plain, Planted, spoil

Condition = Callable[[Call], Any]  # Any: of any truth


@dataclass
class Form(Fault):
    """The result is wrong where a condition holds."""

    name: str
    condition: Condition
    effect: Callable[[Call], object] | None = None

    def after(self, call: Call) -> None:
        if call.operation.name != self.name:
            return
        with np.errstate(all="ignore"):
            if self.condition(call):
                if self.effect is None:
                    for output in call.outputs:
                        spoil(output)
                else:
                    self.effect(call)


class FloatsOnly(Plain):
    """Takes float32 alone, as small devices do."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        infos = [info for info in (*inputs, *outputs) if info is not None]
        if any(info.data_type.is_quantized for info in infos):
            return Support.no(ReasonCode.DATA_TYPE, "no quantised types")
        return super().supports(operation, inputs, outputs)


def _a(call: Call, name: str) -> Any:
    return call.operation.attributes()[name]


def _shape(call: Call, index: int = 0) -> tuple[int, ...]:
    if index >= len(call.infos) or call.infos[index] is None:
        return ()
    info = call.infos[index]
    assert info is not None
    return info.known_shape


def _rank(call: Call, index: int = 0) -> int:
    return len(_shape(call, index))


def _size(call: Call, index: int) -> int:
    return int(np.prod(_shape(call, index)))


def _is_first(call: Call) -> bool:
    return str(_a(call, "data_layout").name).startswith("NC")


def _groups(call: Call) -> int:
    channels = _shape(call)[1 if _is_first(call) else 3]
    return channels // max(_shape(call, 1)[-1], 1)


def _multiplier(call: Call) -> int:
    channels = _shape(call)[1 if _is_first(call) else 3]
    return _shape(call, 1)[3] // max(channels, 1)


def _dilated(call: Call) -> bool:
    return bool(max(_a(call, "dilation")) > 1)


def _is_activated(call: Call) -> bool:
    return _a(call, "activation") is not FusedActivation.NONE


def _is_explicit(call: Call) -> bool:
    return not isinstance(_a(call, "padding"), Padding)


def _has_bias(call: Call) -> bool:
    return len(call.infos) > 2 and call.infos[2] is not None


def _kind(call: Call) -> str:
    attributes = call.operation.attributes()
    name = "operation" if "operation" in attributes else "function"
    return str(attributes[name].name)


def _is_bytes(call: Call) -> bool:
    return call.results[0].data_type in (DataType.QASYMM_S8, DataType.QASYMM_U8)


def _stretched(call: Call, index: int, axis: int) -> bool:
    shape, result = _shape(call, index), call.outputs[0].shape
    return len(shape) == len(result) > 1 and shape[axis] == 1 < result[axis]


def _per_axis(call: Call, index: int) -> bool:
    info = call.infos[index] if index < len(call.infos) else None
    return info is not None and info.quantization is not None and len(info.quantization.scales) > 1


def _scale_axis(call: Call) -> int | None:
    info = call.infos[0]
    return None if info is None or info.quantization is None else info.quantization.axis


def _has_wide_indices(call: Call) -> bool:
    info = call.infos[1]
    return info is not None and info.data_type is DataType.SIGNED64


def _axis(call: Call, name: str = "axis") -> int:
    value = _a(call, name)
    return 0 if value is None else int(value)


_WINDOWS: Mapping[str, tuple[str, Condition]] = {
    "conv-stride-x-taken-for-y": (
        "Convolution2d",
        lambda c: _a(c, "stride")[0] != _a(c, "stride")[1] and _is_first(c),
    ),
    "conv-dilation-in-groups": ("Convolution2d", lambda c: _groups(c) > 1 and _dilated(c)),
    "conv-groups-channels-first": ("Convolution2d", lambda c: _groups(c) > 1 and _is_first(c)),
    "conv-groups-without-bias": ("Convolution2d", lambda c: _groups(c) > 1 and not _has_bias(c)),
    "conv-groups-same-padding": (
        "Convolution2d",
        lambda c: _groups(c) > 1 and _a(c, "padding") is Padding.SAME,
    ),
    "conv-clamp-in-groups": ("Convolution2d", lambda c: _groups(c) > 1 and _is_activated(c)),
    "conv-uneven-padding-strided": (
        "Convolution2d",
        lambda c: _is_explicit(c) and max(_a(c, "stride")) > 1,
    ),
    "conv-dilation-with-same": (
        "Convolution2d",
        lambda c: _a(c, "dilation")[1] > 1 and _a(c, "padding") is Padding.SAME,
    ),
    "conv-relu1-channels-first": (
        "Convolution2d",
        lambda c: _a(c, "activation") is FusedActivation.RELU1 and _is_first(c),
    ),
    "conv-pointwise-strided": (
        "Convolution2d",
        lambda c: _shape(c, 1)[1:3] == (1, 1) and max(_a(c, "stride")) > 1 and _is_first(c),
    ),
    "conv-per-axis-clamped": (
        "Convolution2d",
        lambda c: _per_axis(c, 1) and _is_activated(c) and _is_first(c),
    ),
    "conv-second-image-of-a-batch": (
        "Convolution2d",
        lambda c: _shape(c)[0] > 1 and _dilated(c) and _has_bias(c),
    ),
    "depthwise-dilation-with-multiplier": (
        "DepthwiseConvolution2d",
        lambda c: _multiplier(c) > 1 and _dilated(c),
    ),
    "depthwise-multiplier-strided": (
        "DepthwiseConvolution2d",
        lambda c: _multiplier(c) > 1 and max(_a(c, "stride")) > 1,
    ),
    "depthwise-multiplier-clamped": (
        "DepthwiseConvolution2d",
        lambda c: _multiplier(c) > 1 and _is_activated(c),
    ),
    "depthwise-dilation-channels-first": (
        "DepthwiseConvolution2d",
        lambda c: _dilated(c) and _is_first(c),
    ),
    "depthwise-no-bias-clamped": (
        "DepthwiseConvolution2d",
        lambda c: not _has_bias(c) and _is_activated(c),
    ),
    "depthwise-dilated-same-padding": (
        "DepthwiseConvolution2d",
        lambda c: _a(c, "dilation")[0] > 1 and _a(c, "padding") is Padding.SAME,
    ),
    "depthwise-per-axis-multiplier": (
        "DepthwiseConvolution2d",
        lambda c: _per_axis(c, 1) and _multiplier(c) > 1,
    ),
    "transposed-uneven-padding-first": (
        "TransposeConvolution2d",
        lambda c: _is_explicit(c) and _is_first(c),
    ),
    "transposed-stride-beyond-kernel": (
        "TransposeConvolution2d",
        lambda c: _a(c, "stride")[1] > _shape(c, 1)[2] and not _has_bias(c),
    ),
    "transposed-clamp-strided": (
        "TransposeConvolution2d",
        lambda c: _is_activated(c) and _a(c, "stride")[0] != _a(c, "stride")[1],
    ),
    "conv3d-depth-stride-first": (
        "Convolution3d",
        lambda c: _a(c, "stride")[0] > 1 and _is_first(c),
    ),
    "conv3d-dilation-clamped": ("Convolution3d", lambda c: _dilated(c) and _is_activated(c)),
    "average-uneven-padding-strided": (
        "Pooling2d",
        lambda c: (
            _is_explicit(c) and max(_a(c, "stride")) > 1 and _a(c, "algorithm").name == "AVERAGE"
        ),
    ),
    "average-same-channels-first": (
        "Pooling2d",
        lambda c: (
            _a(c, "padding") is Padding.SAME
            and _is_first(c)
            and _a(c, "algorithm").name == "AVERAGE"
            and min(_a(c, "stride")) == 1 < max(_a(c, "stride"))
        ),
    ),
    "max-pool-clamped-same": (
        "Pooling2d",
        lambda c: (
            _is_activated(c)
            and _a(c, "padding") is Padding.SAME
            and _a(c, "algorithm").name == "MAX"
        ),
    ),
    "l2-pool-channels-first": (
        "Pooling2d",
        lambda c: _a(c, "algorithm").name == "L2" and _is_first(c) and _is_explicit(c),
    ),
    "pool3d-dilated-strided": (
        "Pooling3d",
        lambda c: _dilated(c) and max(_a(c, "stride")) > 1,
    ),
    "pool-with-indices-dilated-batch": (
        "MaxPoolWithIndices",
        lambda c: _dilated(c) and _shape(c)[0] > 1,
    ),
    "resize-half-pixels-channels-first": (
        "Resize",
        lambda c: _a(c, "half_pixel_centers") and _is_first(c),
    ),
    "resize-nearest-both-flags": (
        "Resize",
        lambda c: _a(c, "half_pixel_centers") and _a(c, "align_corners"),
    ),
    "resize-aligned-down": (
        "Resize",
        lambda c: (
            _a(c, "align_corners")
            and _a(c, "method").name == "BILINEAR"
            and c.outputs[0].size < _size(c, 0)
        ),
    ),
    "space-to-batch-uneven-block-first": (
        "SpaceToBatchNd",
        lambda c: len(set(_a(c, "block_shape"))) > 1 and _is_first(c),
    ),
    "batch-to-space-crop-uneven-block": (
        "BatchToSpaceNd",
        lambda c: len(set(_a(c, "block_shape"))) > 1 and np.any(_a(c, "crops")),
    ),
    "depth-to-space-3-first": (
        "DepthToSpace",
        lambda c: _a(c, "block_size") == 3 and _is_first(c),
    ),
}

_ELEMENTS: Mapping[str, tuple[str, Condition]] = {
    "sub-scalar-left": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "SUB" and _size(c, 0) == 1 < _size(c, 1),
    ),
    "div-row-left": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "DIV" and _rank(c, 0) == 1 < _rank(c, 1),
    ),
    "power-constant-left": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "POWER" and _rank(c, 0) < _rank(c, 1),
    ),
    "mul-clamped-scalar": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "MUL" and _is_activated(c) and _size(c, 1) == 1 < _size(c, 0),
    ),
    "sub-clamped-middle": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "SUB" and _is_activated(c) and _stretched(c, 1, 1),
    ),
    "minimum-both-ways": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "MINIMUM" and _stretched(c, 0, 1) and _stretched(c, 1, 0),
    ),
    "squared-difference-batch": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "SQUARED_DIFFERENCE" and _stretched(c, 0, 0),
    ),
    "binary-rank-5": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "MAXIMUM" and len(c.outputs[0].shape) > 4,
    ),
    "floor-div-scalar": (
        "ElementwiseBinary",
        lambda c: _kind(c) == "FLOOR_DIV" and _size(c, 1) == 1 < _size(c, 0),
    ),
    "compare-scalar-left": (
        "Comparison",
        lambda c: _kind(c) == "GREATER" and _size(c, 0) == 1 < _size(c, 1),
    ),
    "compare-middle": (
        "Comparison",
        lambda c: _kind(c) == "LESS_OR_EQUAL" and _stretched(c, 1, 1),
    ),
    "logical-xor-left": (
        "LogicalBinary",
        lambda c: _kind(c) == "LOGICAL_XOR" and _size(c, 0) < _size(c, 1),
    ),
    "select-scalar-left": (
        "Select",
        lambda c: _size(c, 1) == 1 < _size(c, 2) and _size(c, 0) > 1,
    ),
    "prelu-rows": ("Prelu", lambda c: _rank(c, 1) == 1 and _size(c, 1) > 1),
    "leaky-relu-as-maximum": (
        "Activation",
        lambda c: _kind(c) == "LEAKY_RELU" and _a(c, "a") > 1,
    ),
    "leaky-relu-negative": ("Activation", lambda c: _kind(c) == "LEAKY_RELU" and _a(c, "a") < 0),
    "bounded-relu-below-zero": (
        "Activation",
        lambda c: _kind(c) == "BOUNDED_RELU" and _a(c, "a") < 0,
    ),
    "elu-alpha": ("Activation", lambda c: _kind(c) == "ELU" and _a(c, "a") == 2),
    "linear-negative": ("Activation", lambda c: _kind(c) == "LINEAR" and _a(c, "a") < 0),
    "hard-swish-rank-4": ("Activation", lambda c: _kind(c) == "HARD_SWISH" and _rank(c) == 4),
    "erf-rank-4": ("ElementwiseUnary", lambda c: _kind(c) == "ERF" and _rank(c) == 4),
    "dequantize-last-axis": (
        "Dequantize",
        lambda c: _per_axis(c, 0) and _scale_axis(c) == _rank(c) - 1,
    ),
    "quantize-axis-1": (
        "Quantize",
        lambda c: (
            c.results[0].quantization is not None
            and c.results[0].quantization.axis == 1
            and _rank(c) > 2
        ),
    ),
}

_ROWS: Mapping[str, tuple[str, Condition]] = {
    "softmax-beta-other-axis": (
        "Softmax",
        lambda c: _a(c, "beta") != 1 and _axis(c) not in (-1, _rank(c) - 1),
    ),
    "log-softmax-rank-5": ("LogSoftmax", lambda c: _rank(c) == 5 and _axis(c) == -2),
    "l2-epsilon-added": (
        "L2Normalization",
        lambda c: _a(c, "epsilon") > 1 and not _is_bytes(c),
    ),
    "layer-normalization-no-beta": (
        "LayerNormalization",
        lambda c: len([i for i in c.infos if i]) == 2 and len(_a(c, "axes")) > 1,
    ),
    "layer-normalization-epsilon-outside": (
        "LayerNormalization",
        lambda c: _a(c, "eps") > 0.1 and _a(c, "axes") == (0,),
    ),
    "rms-normalization-first": ("RmsNormalization", lambda c: _a(c, "axes") == (0,)),
    "instance-normalization-first": (
        "InstanceNormalization",
        lambda c: _is_first(c) and _a(c, "beta") != 0,
    ),
    "local-response-two-axes": (
        "Normalization",
        lambda c: len(_a(c, "axes")) > 1 and _a(c, "k") != 1,
    ),
    "mean-keeps-unsorted": (
        "Reduce",
        lambda c: (
            _kind(c) == "MEAN"
            and _a(c, "axes") is not None
            and list(_a(c, "axes")) != sorted(_a(c, "axes"))
            and _a(c, "keep_dims")
        ),
    ),
    "max-outer-axes": ("Reduce", lambda c: _kind(c) == "MAX" and _a(c, "axes") == (0, -1)),
    "prod-keeps-first": (
        "Reduce",
        lambda c: _kind(c) == "PROD" and _a(c, "axes") == (0,) and _a(c, "keep_dims"),
    ),
    "sum-rank-5-middle": (
        "Reduce",
        lambda c: _kind(c) == "SUM" and _rank(c) == 5 and _a(c, "axes") == (1,),
    ),
    "arg-max-negative-axis-wide": (
        "ArgMinMax",
        lambda c: _axis(c) < -1 and c.results[0].data_type is DataType.SIGNED64,
    ),
    "arg-min-rank-5": ("ArgMinMax", lambda c: _kind(c) == "MIN" and _rank(c) == 5),
    "top-k-smallest-all": (
        "TopkV2",
        lambda c: not _a(c, "largest") and _a(c, "k") == _shape(c)[-1],
    ),
    "cumulate-exclusive-middle": (
        "Cumulate",
        lambda c: (
            _a(c, "exclusive") and _a(c, "reverse") and _axis(c) % _rank(c) not in (0, _rank(c) - 1)
        ),
    ),
    "product-square-transposed": (
        "BatchMatMul",
        lambda c: _a(c, "transpose_y") and _shape(c, 1)[-1] == _shape(c, 1)[-2],
    ),
    "product-broadcast-transposed": (
        "BatchMatMul",
        lambda c: _a(c, "transpose_x") and len(_shape(c)) > len(_shape(c, 1)),
    ),
    "product-middle-batch": (
        "BatchMatMul",
        lambda c: _rank(c) == 4 and _shape(c)[1] == 1 < _shape(c, 1)[1],
    ),
    "dense-keeps-dims-clamped": (
        "FullyConnected",
        lambda c: _a(c, "keep_num_dims") and _is_activated(c) and _rank(c) > 2,
    ),
    "dense-flattened-no-bias": (
        "FullyConnected",
        lambda c: _shape(c)[-1] != _shape(c, 1)[-1] and not _has_bias(c),
    ),
}

_MOVES: Mapping[str, tuple[str, Condition]] = {
    "concat-of-five": ("Concat", lambda c: len(c.infos) > 4),
    "concat-negative-axis-many": ("Concat", lambda c: _axis(c) < -1 and len(c.infos) > 2),
    "concat-constant-between": (
        "Concat",
        lambda c: len(c.infos) == 3 and _axis(c) in (0,) and _rank(c) > 3,
    ),
    "stack-last-many": ("Stack", lambda c: _axis(c) == -1 and len(c.infos) > 3),
    "split-into-five": ("Splitter", lambda c: len(c.outputs) > 4),
    "split-rest-negative": (
        "Splitter",
        lambda c: _a(c, "sizes") is not None and -1 in _a(c, "sizes") and _axis(c) < 0,
    ),
    "transpose-rank-4-rotated": ("Transpose", lambda c: _a(c, "perm") == (3, 0, 1, 2)),
    "transpose-rank-6": ("Transpose", lambda c: _rank(c) == 6),
    "pad-value-rank-5": ("Pad", lambda c: _a(c, "pad_value") != 0 and _rank(c) == 5),
    "pad-reflect-first-axis": (
        "Pad",
        lambda c: (
            _a(c, "padding_mode").name == "REFLECT"
            and _a(c, "pad_list")[0] != (0, 0)
            and not np.any(_a(c, "pad_list")[1:])
        ),
    ),
    "slice-to-the-end-rank-4": ("Slice", lambda c: -1 in _a(c, "size") and _rank(c) == 4),
    "strided-backwards-masked": (
        "StridedSlice",
        lambda c: min(_a(c, "stride")) < 0 and _a(c, "begin_mask"),
    ),
    "strided-beyond-the-end": (
        "StridedSlice",
        lambda c: max(_a(c, "end")) > 8 and max(_a(c, "stride")) == 3,
    ),
    "gather-negative-axis-wide": (
        "Gather",
        lambda c: _axis(c) < 0 and _has_wide_indices(c),
    ),
    "gather-batch-rows": ("Gather", lambda c: _a(c, "batch_dims") and len(_shape(c, 1)) > 2),
    "gather-nd-wraps-elements": (
        "GatherNd",
        lambda c: _a(c, "wraps_negative") and _shape(c, 1)[-1] == _rank(c),
    ),
    "scatter-max-last": (
        "ScatterElements",
        lambda c: _a(c, "reduction").name == "MAX" and _axis(c) < 0,
    ),
    "one-hot-middle-constant": (
        "OneHot",
        lambda c: _a(c, "axis") == 1 and _rank(c) > 2,
    ),
    "tile-inner-axes": ("Tile", lambda c: _a(c, "multiples")[0] == 1 and _rank(c) == 5),
    "reverse-two-axes": ("ReverseV2", lambda c: len(_a(c, "axes")) > 1 and _rank(c) > 3),
    "shuffle-first-axis": ("ChannelShuffle", lambda c: _axis(c) == 0 and _rank(c) == 4),
    "expand-negative": ("ExpandDims", lambda c: _axis(c) == -3),
}


def _planted(table: Mapping[str, tuple[str, Condition]], area: str) -> dict[str, Planted]:
    """The faults of a table, every other one of them in a backend of floats."""
    kinds = (Plain, FloatsOnly)
    planted: dict[str, Planted] = {}
    for number, (label, (name, condition)) in enumerate(table.items()):
        is_of_bytes = "per-axis" in label or "quantize-" in label
        make = Plain if is_of_bytes else kinds[number % 2]
        fault = Form(name, condition)
        planted[f"{area}/{label}"] = Planted(f"{name}/", partial(make, fault))
    return planted


FORM_FAULTS: dict[str, Planted] = {
    **_planted(_WINDOWS, "windows"),
    **_planted(_ELEMENTS, "elements"),
    **_planted(_ROWS, "rows"),
    **_planted(_MOVES, "moves"),
}
"""By class and name."""
