"""Wrong kernels of the kinds that vendors write: for floats, whole numbers and images.

Each says what it is about: the operations, when it is wrong, and what comes out then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # attributes of any operation

import numpy as np

from armpy.ops import Padding, PaddingMode
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from tests.support.planted_faults import Call, Fault

Effect = Callable[[Call], object]
Condition = Callable[[Call], bool]


@dataclass
class Wrong(Fault):
    """Some operations are wrong at some time.

    Parameters
    ----------
    names : tuple of str
        The operations; empty for all.
    condition : callable
    effect : callable
    """

    names: tuple[str, ...]
    condition: Condition
    effect: Effect
    fired: int = 0

    def after(self, call: Call) -> None:
        if self.names and call.operation.name not in self.names:
            return
        with np.errstate(all="ignore"):
            if self.condition(call):
                before = [output.copy() for output in call.outputs]
                self.effect(call)
                same = (
                    a.tobytes() == b.tobytes() for a, b in zip(before, call.outputs, strict=True)
                )
                self.fired += not all(same)


# --- What comes out


def end(call: Call) -> None:
    """The last element is something else."""
    output = call.outputs[0]
    if output.size:
        flat = output.reshape(-1)
        if output.dtype == bool:
            flat[-1] = not flat[-1]
        else:
            flat[-1:].view(np.uint8)[-1] ^= 0x40


def tail(lanes: int) -> Effect:
    """What does not fill a vector is not written."""

    def effect(call: Call) -> None:
        for output in call.outputs:
            flat = output.reshape(-1)
            flat[flat.size - flat.size % lanes :] = 0

    return effect


def row_tail(lanes: int) -> Effect:
    """What does not fill a vector at each row's end is not written."""

    def effect(call: Call) -> None:
        output = call.outputs[0]
        if output.ndim:
            output[..., output.shape[-1] - output.shape[-1] % lanes :] = 0

    return effect


def first_of_batch(call: Call) -> None:
    """Everything in the batch is as its first."""
    for output in call.outputs:
        output[...] = output[:1].copy()


def real(function: Callable[..., Any]) -> Effect:
    """The function of the inputs, for floats, is written to the first output."""

    def effect(call: Call) -> None:
        given = [None if a is None else np.asarray(a) for a in call.inputs]
        found = function(call, *given)
        if found is not None and np.shape(found) == call.outputs[0].shape:
            call.outputs[0][...] = np.asarray(found).astype(call.outputs[0].dtype)

    return effect


# --- When


def always(call: Call) -> bool:
    return True


def is_float(call: Call) -> bool:
    return bool(call.outputs[0].dtype.kind == "f")


def attribute(call: Call, name: str) -> Any:
    """An attribute, None for an operation without it."""
    return call.operation.attributes().get(name)


def kind(*names: str) -> Condition:
    """It is one of some functions."""

    def condition(call: Call) -> bool:
        for name in ("operation", "function"):
            if getattr(attribute(call, name), "name", None) in names:
                return True
        return False

    return condition


def both(*conditions: Condition) -> Condition:
    """All conditions hold."""
    return lambda call: all(condition(call) for condition in conditions)


def shape_of(call: Call, index: int = 0) -> tuple[int, ...]:
    """The shape of an input; () for none."""
    if index >= len(call.inputs):
        return ()
    array = call.inputs[index]
    return () if array is None else array.shape


def is_channel_first(call: Call) -> bool:
    return attribute(call, "data_layout") is DataLayout.NCHW


def many(call: Call) -> bool:
    """There is a batch."""
    return call.outputs[0].ndim > 1 and call.outputs[0].shape[0] > 1


def is_uneven(call: Call) -> bool:
    """There is more padding on one side than on the other."""
    padding = attribute(call, "padding")
    return isinstance(padding, tuple) and any(len(set(pair)) > 1 for pair in padding)


def is_padded(call: Call) -> bool:
    """There is padding."""
    padding = attribute(call, "padding")
    return padding is Padding.SAME or (
        isinstance(padding, tuple) and any(n for pair in padding for n in pair)
    )


def axis_is_negative(call: Call) -> bool:
    axes = attribute(call, "axes") or ()
    axis = attribute(call, "axis")
    return any(a < 0 for a in axes) or (axis is not None and axis < 0)


def info(call: Call, index: int = 0) -> TensorInfo:
    """What an input is."""
    found = call.infos[index]
    assert found is not None
    return found


# --- What is computed


def broadcasts(call: Call, side: int, axis: int) -> bool:
    """One operand has a 1 where the result has more, at an axis from behind."""
    shape, result = shape_of(call, side), call.outputs[0].shape
    return len(shape) >= -axis and shape[axis] == 1 and result[axis] > 1


def through_float(call: Call, left: Array, right: Array) -> Array:
    return left.astype(np.float32) * right.astype(np.float32)


def without_largest(call: Call, x: Array, *_: Array) -> Array:
    """Softmax with nothing taken away first."""
    axis, beta = attribute(call, "axis"), attribute(call, "beta")
    powers = np.exp(np.float32(beta) * x.astype(np.float32))
    shares: Array = powers / powers.sum(axis, keepdims=True)
    return shares


def logarithm_of_softmax(call: Call, x: Array, *_: Array) -> Array:
    axis, beta = attribute(call, "axis"), attribute(call, "beta")
    moved = np.float32(beta) * (x - x.max(axis, keepdims=True)).astype(np.float32)
    powers = np.exp(moved)
    logarithms: Array = np.log(powers / powers.sum(axis, keepdims=True))
    return logarithms


def reflected_as_symmetric(call: Call, x: Array, *_: Array) -> Array:
    return np.pad(x, attribute(call, "pad_list"), mode="symmetric")


def turned_the_other_way(call: Call, x: Array, *_: Array) -> Array:
    perm = [int(a) for a in attribute(call, "perm")]
    return np.transpose(x, np.argsort(perm)).reshape(call.outputs[0].shape)


def multiplier_outside(call: Call) -> None:
    """The channels of a multiplier lie side by side."""
    output = call.outputs[0]
    channels = shape_of(call)[3]
    split = output.reshape(*output.shape[:3], channels, -1)
    output[...] = np.swapaxes(split, 3, 4).reshape(output.shape)


def multiplies(call: Call) -> bool:
    channels = shape_of(call)
    return not is_channel_first(call) and len(channels) == 4 and channels[3] > 1


def has_no_bias(call: Call) -> bool:
    return len(call.inputs) < 3 or call.inputs[2] is None


def spans(call: Call) -> bool:
    """It reduces several axes that are not side by side."""
    axes = sorted(a % len(shape_of(call)) for a in attribute(call, "axes") or ())
    return len(axes) > 1 and axes[-1] - axes[0] >= len(axes)


def smallest_of(limit: float, function: Callable[..., Array]) -> Effect:
    def effect(call: Call) -> None:
        output = call.outputs[0]
        output[...] = function(output, np.asarray(limit, output.dtype))

    return effect


def nan_where(test: Callable[[Array], Array]) -> Effect:
    """Not a number where the input is out of a kernel's range."""

    def effect(call: Call) -> None:
        x = call.inputs[0]
        if x is not None and x.shape == call.outputs[0].shape:
            call.outputs[0][test(x)] = np.nan

    return effect


def of_squares(call: Call, x: Array, *_: Array) -> Array | None:
    """Variance as the difference of two means, in float32."""
    if attribute(call, "axes") != (-1,) or (len(call.inputs) > 1 and call.inputs[1] is not None):
        return None
    y = x.astype(np.float32)
    mean = y.mean(-1, keepdims=True, dtype=np.float32)
    variance = (y * y).mean(-1, keepdims=True, dtype=np.float32) - mean * mean
    normal: Array = (y - mean) / np.sqrt(variance + np.float32(attribute(call, "eps")))
    return normal


def in_half(call: Call, x: Array, weights: Array, *_: Array) -> Array | None:
    """Sums of float16 in float16."""
    if x.dtype != np.float16 or not has_no_bias(call):
        return None
    rows = x.reshape(-1, weights.shape[1])
    total = np.zeros((len(rows), len(weights)), np.float16)
    for k in range(weights.shape[1]):
        total += rows[:, k : k + 1] * weights[None, :, k]
    return total.reshape(call.outputs[0].shape)


def bytes_of_ones(call: Call) -> None:
    """True is 255."""
    output = call.outputs[0]
    if output.dtype == bool and output.size:
        output.reshape(-1).view(np.uint8)[...] = output.reshape(-1).view(np.uint8) * 255


@dataclass
class Edited(Fault):
    """An attribute is something else than what was asked for.

    Parameters
    ----------
    name, attribute : str
    value : object
    """

    name: str
    attribute: str
    value: object

    def operation(self, operation: Any, how: str) -> Any:
        if operation.name != self.name:
            return operation
        return operation.with_attributes(**{self.attribute: self.value})


def wrong(names: str, condition: Condition = always, effect: Effect = end) -> Callable[[], Fault]:
    """What makes such a fault."""
    return lambda: Wrong(tuple(names.split()), condition, effect)


def edited(name: str, attribute: str, value: object) -> Callable[[], Fault]:
    """What makes such a fault."""
    return lambda: Edited(name, attribute, value)


BINARY = "ElementwiseBinary"
UNARY = "ElementwiseUnary"
CONV = "Convolution2d"
DEPTHWISE = "DepthwiseConvolution2d"

NUMBERS: dict[str, Callable[[], Fault]] = {
    "binary/tail-of-8": wrong(BINARY, lambda c: c.outputs[0].size > 8, tail(8)),
    "binary/broadcast-left-last": wrong(BINARY, lambda c: broadcasts(c, 0, -1)),
    "binary/broadcast-both": wrong(
        BINARY,
        lambda c: (
            any(broadcasts(c, 0, -n) for n in (1, 2)) and any(broadcasts(c, 1, -n) for n in (1, 2))
        ),
    ),
    "binary/ranks-differ-by-2": wrong(
        BINARY, lambda c: abs(len(shape_of(c)) - len(shape_of(c, 1))) >= 2
    ),
    "binary/middle-axis": wrong(
        BINARY,
        lambda c: c.outputs[0].ndim >= 3 and broadcasts(c, 1, -2) and not broadcasts(c, 1, -1),
    ),
    "binary/rank-0": wrong(BINARY, lambda c: c.outputs[0].ndim == 0),
    "binary/rank-5": wrong(BINARY, lambda c: c.outputs[0].ndim >= 5),
    "binary/floor-is-trunc": wrong(
        BINARY, kind("FLOOR_DIV"), real(lambda c, a, b: np.trunc(a / b))
    ),
    "binary/modulo-of-c": wrong(BINARY, kind("FLOOR_MOD"), real(lambda c, a, b: np.fmod(a, b))),
    "binary/shift-brings-zeros": wrong(
        BINARY,
        lambda c: kind("SHIFT_RIGHT")(c) and c.outputs[0].dtype == np.int32,
        real(lambda c, a, b: (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32)),
    ),
    "binary/quadrant": wrong(BINARY, kind("ATAN2"), real(lambda c, a, b: np.arctan(a / b))),
    "binary/negative-base": wrong(
        BINARY,
        both(kind("POWER"), is_float),
        real(lambda c, a, b: np.exp(b * np.log(a))),
    ),
    "binary/int32-through-float": wrong(
        BINARY,
        lambda c: kind("MUL")(c) and c.outputs[0].dtype == np.int32,
        real(lambda c, a, b: (a.astype(np.float32) * b.astype(np.float32)).astype(np.int64)),
    ),
    "binary/maximum-loses-nan": wrong(
        BINARY, both(kind("MAXIMUM"), is_float), real(lambda c, a, b: np.fmax(a, b))
    ),
    "binary/minimum-loses-nan": wrong(
        BINARY, both(kind("MINIMUM"), is_float), real(lambda c, a, b: np.fmin(a, b))
    ),
    "binary/zero-has-no-sign": wrong(
        BINARY, both(kind("DIV"), is_float), real(lambda c, a, b: a / (b + 0.0))
    ),
    "comparison/nan-is-equal": wrong(
        "Comparison", kind("NOT_EQUAL"), real(lambda c, a, b: (a < b) | (a > b))
    ),
    "comparison/true-is-255": wrong("Comparison", always, bytes_of_ones),
    "logical/tail-of-16": wrong("LogicalBinary", lambda c: c.outputs[0].size > 16, tail(16)),
    "unary/tail-of-4": wrong(UNARY, lambda c: c.outputs[0].size > 4, tail(4)),
    "unary/exp-ends-at-88": wrong(
        UNARY, both(kind("EXP"), is_float), real(lambda c, a: np.exp(np.minimum(a, 88)))
    ),
    "unary/log-of-denormals": wrong(
        UNARY,
        both(kind("LOG"), is_float),
        real(lambda c, a: np.log(np.where(np.abs(a) < 1.1754944e-38, 0, a))),
    ),
    "unary/reciprocal-of-minus-0": wrong(
        UNARY, both(kind("RECIPROCAL"), is_float), real(lambda c, a: 1 / (a + 0.0))
    ),
    "unary/sine-of-large": wrong(
        UNARY, kind("SIN"), real(lambda c, a: np.sin(np.where(np.abs(a) > 50, 0, a)))
    ),
    "unary/abs-of-least": wrong(
        UNARY,
        lambda c: kind("ABS")(c) and c.outputs[0].dtype == np.int32,
        real(lambda c, a: np.minimum(np.abs(a.astype(np.int64)), 2**31 - 1)),
    ),
    "activation/tail-of-16": wrong("Activation", lambda c: c.outputs[0].size > 16, tail(16)),
    "activation/tanh-overflows": wrong(
        "Activation", both(kind("TANH"), is_float), nan_where(lambda x: x > 44)
    ),
    "activation/softplus-overflows": wrong(
        "Activation", both(kind("SOFT_RELU"), is_float), smallest_of(88, np.minimum)
    ),
    "activation/gelu-approximates": edited("Activation", "approximate", True),
    "activation/lower-bound": wrong(
        "Activation", both(kind("BOUNDED_RELU"), is_float), smallest_of(0, np.maximum)
    ),
    "activation/leaky-is-0.01": wrong(
        "Activation",
        both(kind("LEAKY_RELU"), is_float),
        real(lambda c, x: np.where(x > 0, x, np.float32(0.01) * x)),
    ),
    "activation/elu-forgets-alpha": wrong(
        "Activation",
        both(kind("ELU"), is_float),
        real(lambda c, x: np.where(x > 0, x, np.expm1(x))),
    ),
    "activation/relu-loses-nan": wrong(
        "Activation", both(kind("RELU"), is_float), real(lambda c, x: np.fmax(x, 0))
    ),
    "softmax/no-largest": wrong("Softmax", is_float, real(without_largest)),
    "softmax/logarithm-after": wrong("LogSoftmax", is_float, real(logarithm_of_softmax)),
    "softmax/depth-tail": wrong("Softmax", lambda c: c.outputs[0].shape[-1:] > (4,), row_tail(4)),
    "softmax/inner-axis": wrong(
        "Softmax LogSoftmax",
        lambda c: attribute(c, "axis") not in (-1, c.outputs[0].ndim - 1),
    ),
    "conv/dilations-swapped": wrong(CONV, lambda c: len(set(attribute(c, "dilation"))) > 1),
    "conv/strides-swapped": wrong(CONV, lambda c: len(set(attribute(c, "stride"))) > 1),
    "conv/dilation-and-stride": wrong(
        CONV, lambda c: max(attribute(c, "dilation")) > 1 and max(attribute(c, "stride")) > 1
    ),
    "conv/dilation-in-padding": wrong(
        CONV,
        lambda c: max(attribute(c, "dilation")) > 1 and attribute(c, "padding") is Padding.SAME,
    ),
    "conv/padding-at-one-side": wrong(CONV, is_uneven),
    "conv/groups": wrong(CONV, lambda c: shape_of(c)[-1] != shape_of(c, 1)[-1]),
    "conv/groups-of-many": wrong(CONV, lambda c: 1 < shape_of(c, 1)[-1] < shape_of(c)[-1]),
    "conv/even-window": wrong(
        CONV, lambda c: attribute(c, "padding") is Padding.SAME and shape_of(c, 1)[1] % 2 == 0
    ),
    "conv/channel-first-batch": wrong(CONV, lambda c: is_channel_first(c) and many(c)),
    "conv/window-larger-than-image": wrong(
        CONV, lambda c: is_padded(c) and shape_of(c, 1)[1] > shape_of(c)[1]
    ),
    "conv/one-row": wrong(CONV, lambda c: shape_of(c)[1] == 1 and shape_of(c)[2] > 1),
    "conv/weights-change": wrong(CONV, lambda c: not info(c, 1).is_constant),
    "conv/infinity-in-padding": wrong(
        CONV,
        lambda c: is_padded(c) and is_float(c) and not np.isfinite(np.asarray(c.inputs[0])).all(),
    ),
    "depthwise/multiplier-outside": wrong(DEPTHWISE, multiplies, multiplier_outside),
    "depthwise/dilation": wrong(DEPTHWISE, lambda c: max(attribute(c, "dilation")) > 1),
    "depthwise/batch": wrong(DEPTHWISE, many, first_of_batch),
    "transpose-conv/stride-beyond-window": wrong(
        "TransposeConvolution2d",
        lambda c: (
            attribute(c, "stride")[0] > shape_of(c, 1)[1]
            or attribute(c, "stride")[1] > shape_of(c, 1)[2]
        ),
    ),
    "transpose-conv/no-bias": wrong("TransposeConvolution2d", has_no_bias),
    "transpose-conv/given-shape": wrong(
        "TransposeConvolution2d", lambda c: attribute(c, "output_shape") is not None
    ),
    "pool/channel-tail": wrong(
        "Pooling2d", lambda c: not is_channel_first(c) and c.outputs[0].shape[3] > 4, row_tail(4)
    ),
    "pool/padding-counts": wrong(
        "Pooling2d",
        lambda c: attribute(c, "algorithm").name == "AVERAGE" and is_padded(c),
        lambda c: c.outputs[0].reshape(-1).__setitem__(0, c.outputs[0].reshape(-1)[0] // 2),
    ),
    "pool/padding-is-0": wrong(
        "Pooling2d",
        lambda c: attribute(c, "algorithm").name == "MAX" and is_padded(c) and is_float(c),
        lambda c: c.outputs[0].reshape(-1).__setitem__(0, max(c.outputs[0].reshape(-1)[0], 0)),
    ),
    "pool/max-loses-nan": wrong(
        "Pooling2d",
        lambda c: attribute(c, "algorithm").name == "MAX" and is_float(c),
        lambda c: np.nan_to_num(c.outputs[0], copy=False, nan=-3.4e4),
    ),
    "dense/batch-reads-first": wrong("FullyConnected", many, first_of_batch),
    "dense/no-bias": wrong("FullyConnected", has_no_bias),
    "dense/half-sums": wrong("FullyConnected", is_float, real(in_half)),
    "dense/rank-3": wrong("FullyConnected", lambda c: len(shape_of(c)) == 3),
    "matmul/batch-of-one": wrong(
        "BatchMatMul",
        lambda c: len(shape_of(c)) > 2 and shape_of(c)[0] == 1 and shape_of(c, 1)[:1] > (1,),
    ),
    "matmul/both-turned": wrong(
        "BatchMatMul", lambda c: bool(attribute(c, "transpose_x") and attribute(c, "transpose_y"))
    ),
    "reduce/negative-axis": wrong("Reduce", axis_is_negative),
    "reduce/axes-apart": wrong("Reduce", spans),
    "reduce/min-begins-at-0": wrong("Reduce", kind("MIN"), smallest_of(0, np.minimum)),
    "reduce/max-begins-at-0": wrong("Reduce", kind("MAX"), smallest_of(0, np.maximum)),
    "reduce/outer-axis-kept": wrong(
        "Reduce",
        lambda c: (
            bool(attribute(c, "keep_dims"))
            and tuple(a % max(1, len(shape_of(c))) for a in attribute(c, "axes") or ()) == (0,)
        ),
    ),
    "argmax/negative-axis": wrong("ArgMinMax", axis_is_negative),
    "argmax/of-64-bits": wrong("ArgMinMax", lambda c: c.outputs[0].dtype == np.int64, end),
    "concat/third": wrong("Concat", lambda c: len(c.inputs) > 2),
    "concat/empty-piece": wrong(
        "Concat",
        lambda c: any(a is not None and not a.size for a in c.inputs) and c.outputs[0].size > 0,
    ),
    "split/uneven": wrong("Splitter", lambda c: len({o.shape for o in c.outputs}) > 1),
    "split/last": wrong(
        "Splitter Unstack",
        lambda c: len(c.outputs) > 2,
        lambda c: c.outputs[-1].__setitem__(
            ..., c.outputs[0] if c.outputs[0].shape == c.outputs[-1].shape else 0
        ),
    ),
    "pad/reflects-edge-too": wrong(
        "Pad",
        lambda c: attribute(c, "padding_mode") is PaddingMode.REFLECT,
        real(reflected_as_symmetric),
    ),
    "pad/value-is-0": edited("Pad", "pad_value", 0.0),
    "pad/last-axis-behind": wrong(
        "Pad", lambda c: attribute(c, "pad_list")[-1][0] == 0 < attribute(c, "pad_list")[-1][1]
    ),
    "slice/backwards": wrong("StridedSlice", lambda c: any(s < 0 for s in attribute(c, "stride"))),
    "slice/shrinks-inside": wrong(
        "StridedSlice", lambda c: bool(attribute(c, "shrink_axis_mask") & ~1)
    ),
    "slice/ellipsis": wrong("StridedSlice", lambda c: bool(attribute(c, "ellipsis_mask"))),
    "slice/to-the-end": wrong("Slice", lambda c: -1 in (attribute(c, "size") or ())),
    "gather/inner-axis": wrong("Gather", lambda c: attribute(c, "axis") % len(shape_of(c)) > 0),
    "gather/batch": wrong("Gather GatherNd", lambda c: bool(attribute(c, "batch_dims"))),
    "gather/rank-of-indices": wrong("Gather", lambda c: len(shape_of(c, 1)) > 1),
    "gather/scalar-index": wrong("Gather", lambda c: shape_of(c, 1) == ()),
    "scatter/of-the-same-place": wrong(
        "ScatterNd",
        lambda c: (
            len(np.unique(np.asarray(c.inputs[0]).reshape(-1, shape_of(c)[-1]), axis=0))
            < np.asarray(c.inputs[0]).reshape(-1, shape_of(c)[-1]).shape[0]
        ),
    ),
    "transpose/inverse": wrong(
        "Transpose", lambda c: bool(attribute(c, "perm")), real(turned_the_other_way)
    ),
    "transpose/rank-5": wrong("Transpose", lambda c: c.outputs[0].ndim == 5),
    "resize/corners-of-one": wrong(
        "Resize", lambda c: bool(attribute(c, "align_corners")) and 1 in c.outputs[0].shape[1:3]
    ),
    "resize/smaller": wrong("Resize", lambda c: c.outputs[0].shape[1] < shape_of(c)[1]),
    "resize/batch": wrong("Resize", many, first_of_batch),
    "space/uneven-block": wrong(
        "SpaceToBatchNd BatchToSpaceNd", lambda c: len(set(attribute(c, "block_shape"))) > 1
    ),
    "space/crops-behind": wrong(
        "BatchToSpaceNd", lambda c: any(b for _, b in attribute(c, "crops") or ())
    ),
    "space/block-of-3": wrong(
        "DepthToSpace SpaceToDepth", lambda c: attribute(c, "block_size") > 2
    ),
    "space/channel-first": wrong("DepthToSpace SpaceToDepth", is_channel_first),
    "cast/wraps": wrong(
        "Cast",
        lambda c: info(c).data_type is DataType.FLOAT32 and c.outputs[0].dtype == np.uint8,
        real(lambda c, x: np.nan_to_num(x, posinf=0, neginf=0).astype(np.int64) & 0xFF),
    ),
    "cast/rounds": wrong(
        "Cast",
        lambda c: info(c).data_type is DataType.FLOAT32 and c.outputs[0].dtype == np.int32,
        real(lambda c, x: np.clip(np.round(np.nan_to_num(x)), -(2.0**31), 2.0**31 - 200)),
    ),
    "cast/true-is-not-1": wrong(
        "Cast",
        lambda c: info(c).data_type is DataType.BOOLEAN,
        lambda c: (
            c.outputs[0].__imul__(np.asarray(3, c.outputs[0].dtype))
            if c.outputs[0].dtype != bool
            else None
        ),
    ),
    "norm/zero-vector": wrong(
        "L2Normalization",
        is_float,
        lambda c: c.outputs[0].__setitem__(c.outputs[0] == 0, np.nan),
    ),
    "norm/epsilon": edited("LayerNormalization", "eps", 1e-12),
    "norm/difference-of-means": wrong("LayerNormalization", is_float, real(of_squares)),
    "norm/batch": wrong("InstanceNormalization", many, first_of_batch),
    "cumulate/both": wrong(
        "Cumulate", lambda c: bool(attribute(c, "exclusive") and attribute(c, "reverse"))
    ),
    "top/smallest": wrong("TopkV2", lambda c: not attribute(c, "largest")),
    "tile/two-axes": wrong(
        "Tile", lambda c: sum(m > 1 for m in attribute(c, "multiples") or ()) > 1
    ),
    "select/condition-stretches": wrong("Select", lambda c: shape_of(c) != c.outputs[0].shape),
    "lstm/cell-clip": edited("Lstm", "cell_clip", 0.0),
    "lstm/sequence-clip": edited("UnidirectionalSequenceLstm", "projection_clip", 0.0),
    "rnn/activation": wrong(
        "Rnn UnidirectionalSequenceRnn", lambda c: c.outputs[0].shape[:1] > (1,), first_of_batch
    ),
    "svdf/rank-2": wrong("Svdf", lambda c: attribute(c, "rank") > 1),
    "roi/image": wrong("RoiAlign RoiPooling", lambda c: shape_of(c)[0] > 1),
    "reverse/whole-length": wrong(
        "ReverseSequence",
        lambda c: bool(
            (np.asarray(c.inputs[1]) == shape_of(c)[attribute(c, "sequence_axis")]).any()
        ),
    ),
    "onehot/outside": wrong("OneHot", lambda c: bool((np.asarray(c.inputs[0]) < 0).any())),
}
"""In plain workloads, each the makings of one."""
