"""Wrong results that need two circumstances at once, invented without a look at the kit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy.ops import (
    Activation,
    ArgMinMax,
    BatchMatMul,
    Cast,
    Comparison,
    Concat,
    Convolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    Gather,
    Pooling2d,
    Reduce,
    Resize,
    Softmax,
    TopkV2,
    Transpose,
    UnidirectionalSequenceLstm,
)
from armpy.ops.activation_layers import ActivationFunction
from armpy.ops.elementwise import BinaryOperation, ComparisonOperation, UnaryOperation
from armpy.ops.operation import Array
from armpy.ops.pooling import PoolingAlgorithm
from armpy.ops.reduction import ReduceOperation
from armpy.ops.resizing import ResizeMethod
from armpy.ops.shapes import Padding
from armpy.types import DataLayout, DataType

from .blind_values import (
    Answer,
    image_axes,
    info_of,
    is_float,
    planted,
    recomputed,
    replace_results,
    source,
)
from .faults import Call, Fused, Planted

# --- Windows


def dilation_without_stride(operation: Convolution2d, call: Call) -> Answer:
    """With a dilation the stride is applied to the dilated window's first column only."""
    is_both = max(operation.dilation) > 1 and max(operation.stride) > 1
    return [np.roll(call.outputs[0], 1, 2)] if is_both else None


def even_kernel(operation: Convolution2d, call: Call) -> Answer:
    """An even kernel's odd element of padding is in front."""
    kernel = source(call, 1).shape[1:3]
    if operation.padding is not Padding.SAME or kernel[0] % 2 or kernel[1] % 2:
        return None
    if operation.stride != (1, 1) or operation.dilation != (1, 1):
        return None
    pairs = tuple((size - size // 2, (size - 1) // 2) for size in kernel)
    return recomputed(call, replace(operation, padding=pairs))


def pointwise_padding(operation: Convolution2d, call: Call) -> Answer:
    """A kernel of one element ignores explicit padding: the edge is computed as the inside."""
    if isinstance(operation.padding, Padding) or not any(map(any, operation.padding)):
        return None
    if source(call, 1).shape[1:3] != (1, 1):
        return None
    output = call.outputs[0].copy()
    return [np.roll(output, 1, image_axes(operation.data_layout))]


def window_beyond_image(operation: Pooling2d, call: Call) -> Answer:
    """A window larger than the image averages over the whole window."""
    height, width = (source(call).shape[axis] for axis in image_axes(operation.data_layout))
    is_average = operation.algorithm is PoolingAlgorithm.AVERAGE
    if not is_average or operation.pool_size[0] <= height or operation.pool_size[1] <= width:
        return None
    return [call.outputs[0] // 2 if call.outputs[0].dtype.kind in "iu" else call.outputs[0] / 2]


def corners_of_one(operation: Resize, call: Call) -> Answer:
    """With aligned corners, a height of 1 divides by 0."""
    height = image_axes(operation.data_layout)[0]
    is_bilinear = operation.method is ResizeMethod.BILINEAR and operation.align_corners
    if not is_bilinear or call.outputs[0].shape[height] != 1 or not is_float(call):
        return None
    return [np.full_like(call.outputs[0], np.nan)]


# --- Matrices


def rows_beyond_tile(operation: FullyConnected, call: Call) -> Answer:
    """Beyond 16 rows, those of an incomplete tile repeat the row before it."""
    output = call.outputs[0].copy()
    rows = output.reshape(-1, output.shape[-1]) if output.size else output
    rest = len(rows) % 16
    if len(rows) < 16 or not rest:
        return None
    rows[-rest:] = rows[-rest - 1]
    return [output]


def both_transposed(operation: BatchMatMul, call: Call) -> Answer:
    """With both operands transposed the result is transposed, where its shape allows it."""
    output = call.outputs[0]
    if not (operation.transpose_x and operation.transpose_y):
        return None
    return [np.swapaxes(output, -1, -2).reshape(output.shape).copy()]


def both_broadcast(operation: BatchMatMul, call: Call) -> Answer:
    """Batches that are broadcast on both sides are counted along the left operand only."""
    left, right = source(call).shape[:-2], source(call, 1).shape[:-2]
    output = call.outputs[0].copy()
    if len(left) != 2 or len(right) != 2 or {left[0] == 1, right[0] == 1} != {True, False}:
        return None
    if {left[1] == 1, right[1] == 1} != {True, False} or (left[0] == 1) == (left[1] == 1):
        return None
    output[1:] = output[:1]
    return [output]


# --- Reductions and orders


def beta_of_other_axis(operation: Softmax, call: Call) -> Answer:
    """Beta is only applied along the last axis."""
    last = source(call).ndim - 1
    if operation.beta == 1 or operation.axis in (-1, last):
        return None
    return recomputed(call, replace(operation, beta=1.0))


def first_thousand(operation: Reduce, call: Call) -> Answer:
    """Sums of float32 leave out what is beyond 1024 elements of the innermost axis."""
    axes = operation.axes or ()
    length = source(call).shape[-1] if source(call).ndim else 0
    is_last = any(axis in (-1, source(call).ndim - 1) for axis in axes)
    if operation.operation is not ReduceOperation.SUM or length <= 1024 or not is_last:
        return None
    short = source(call).copy()
    short[..., 1024:] = 0
    return recomputed(call, inputs=(short, *call.inputs[1:]))


def mean_keeps_zero_point(operation: Reduce, call: Call) -> Answer:
    """A quantised mean ignores that its own quantisation differs."""
    result, info = call.results[0], info_of(call)
    if operation.operation is not ReduceOperation.MEAN or info.quantization is None:
        return None
    if result.quantization == info.quantization:
        return None
    same = (replace(result, quantization=info.quantization),)
    return recomputed(replace_results(call, same))


def last_of_columns(operation: ArgMinMax, call: Call) -> Answer:
    """Of equal elements the last one is found, along any axis but the last."""
    array = source(call)
    axis = operation.axis
    if axis is None or array.ndim < 2 or axis in (-1, array.ndim - 1) or not array.size:
        return None
    turned = recomputed(call, inputs=(np.flip(array, axis), *call.inputs[1:]))[0]
    return [array.shape[axis] - 1 - turned]


def hundred_candidates(operation: TopkV2, call: Call) -> Answer:
    """Only the first 100 elements are looked at."""
    array = source(call)
    if array.ndim == 0 or array.shape[-1] <= 100 or call.outputs[0].shape[-1] > 100:
        return None
    if not is_float(call) or not operation.largest:
        return None
    short = array.copy()
    short[..., 100:] = -np.inf
    return recomputed(call, inputs=(short, *call.inputs[1:]))


def bytes_by_four(operation: Transpose, call: Call) -> Answer:
    """Bytes move by fours along an innermost axis that stays: the rest of it is left behind."""
    output = call.outputs[0]
    perm = operation.perm or ()
    rest = output.shape[-1] % 4 if output.ndim else 0
    is_byte = output.dtype.itemsize == 1 and output.ndim >= 4
    if not is_byte or not rest or perm[-1] != output.ndim - 1 or output.shape[-1] < 4:
        return None
    wrong = output.copy()
    wrong[..., -rest:] = output[..., :1]
    return [wrong]


# --- Quantisation


def concat_as_it_is(operation: Concat, call: Call) -> Answer:
    """Inputs of other scales are copied as they are."""
    result = call.results[0].quantization
    infos = [info for info in call.infos if info is not None]
    if result is None or all(info.quantization == result for info in infos):
        return None
    arrays = [array for array in call.inputs if array is not None]
    return [np.concatenate(arrays, operation.axis)]


def scale_of_left(operation: ElementwiseBinary, call: Call) -> Answer:
    """Quantised sums take the left operand's scale for both."""
    left, right = info_of(call), info_of(call, 1)
    if operation.operation is not BinaryOperation.ADD or left.quantization is None:
        return None
    if left.quantization == right.quantization or left.data_type is DataType.SIGNED32:
        return None
    return recomputed(call, infos=(left, replace(right, quantization=left.quantization)))


def compares_bytes(operation: Comparison, call: Call) -> Answer:
    """Quantised elements are compared as they are stored."""
    left, right = info_of(call), info_of(call, 1)
    if left.quantization is None or left.quantization == right.quantization:
        return None
    return recomputed(call, infos=(left, replace(right, quantization=left.quantization)))


def wrapped_bytes(operation: Cast, call: Call) -> Answer:
    """A float beyond 255 wraps around instead of being saturated."""
    kinds = (DataType.UNSIGNED8, DataType.QASYMM_U8)
    if not is_float(call) or call.results[0].data_type not in kinds:
        return None
    whole = np.nan_to_num(source(call), posinf=0, neginf=0).astype(np.int64)
    is_beyond = (whole > 255) | (whole < 0)
    return [np.where(is_beyond, whole.astype(np.uint8), call.outputs[0])]


# --- Functions


def largest_of_both(operation: Activation, call: Call) -> Answer:
    """Leaky ReLU is the larger one of x and a x, which is not so if a is above 1."""
    if operation.function is not ActivationFunction.LEAKY_RELU or not is_float(call):
        return None
    return [np.maximum(source(call), np.float32(operation.a) * source(call))]


def no_lower_bound(operation: Activation, call: Call) -> Answer:
    """The lower bound of a bounded ReLU is 0."""
    if operation.function is not ActivationFunction.BOUNDED_RELU or operation.b >= 0:
        return None
    if not is_float(call):
        return None
    return [np.clip(source(call), 0, np.float32(max(operation.a, 0)))]


def elu_of_one(operation: Activation, call: Call) -> Answer:
    """The factor of ELU is 1."""
    if operation.function is not ActivationFunction.ELU or operation.a == 1:
        return None
    return recomputed(call, replace(operation, a=1.0))


def power_by_logarithm(operation: ElementwiseBinary, call: Call) -> Answer:
    """Powers of negative numbers are NaN."""
    if operation.operation is not BinaryOperation.POWER or not is_float(call):
        return None
    base = np.broadcast_to(source(call), call.outputs[0].shape)
    return [np.where(base < 0, np.float32(np.nan), call.outputs[0])]


def sign_of_dividend(operation: ElementwiseBinary, call: Call) -> Answer:
    """FLOOR_MOD of floats has the sign of the dividend."""
    if operation.operation is not BinaryOperation.FLOOR_MOD or not is_float(call):
        return None
    return [np.fmod(source(call), source(call, 1))]


def equal_nan(operation: Comparison, call: Call) -> Answer:
    """A NaN does not differ from anything."""
    if operation.operation is not ComparisonOperation.NOT_EQUAL or not is_float(call):
        return None
    is_nan: Array = np.isnan(source(call)) | np.isnan(source(call, 1))
    return [call.outputs[0] & ~is_nan]


def largest_half(operation: ElementwiseUnary, call: Call) -> Answer:
    """Exponentials of float16 end at its largest number."""
    if operation.operation is not UnaryOperation.EXP:
        return None
    if info_of(call).data_type is not DataType.FLOAT16:
        return None
    return [np.minimum(call.outputs[0], np.float16(65504))]


def rounds_up(operation: ElementwiseUnary, call: Call) -> Answer:
    """Halves are rounded away from zero."""
    if operation.operation is not UnaryOperation.ROUND or not is_float(call):
        return None
    x = source(call)
    return [np.where(abs(x) < 2**22, np.trunc(x + np.copysign(np.float32(0.5), x)), x)]


def inverse_of_zero(operation: ElementwiseUnary, call: Call) -> Answer:
    """The inverse root of 0 is the largest number."""
    if operation.operation is not UnaryOperation.RSQRT or not is_float(call):
        return None
    return [np.minimum(call.outputs[0], np.finfo(np.float32).max)]


def axis_before_last(operation: Gather, call: Call) -> Answer:
    """Along the axis before the last one of rank 4, indices of rank 2 are read transposed."""
    indices = source(call, 1)
    is_there = source(call).ndim == 4 and operation.axis in (2, -2)
    if not is_there or indices.ndim != 2:
        return None
    turned = np.ascontiguousarray(indices.T).reshape(indices.shape)
    return recomputed(call, inputs=(call.inputs[0], turned))


def batch_for_time(operation: UnidirectionalSequenceLstm, call: Call) -> Answer:
    """Time and batch are mixed up where both are as long."""
    array = source(call)
    if array.ndim != 3 or array.shape[0] != array.shape[1]:
        return None
    return recomputed(call, replace(operation, time_major=not operation.time_major))


def channels_of_columns(operation: Pooling2d, call: Call) -> Answer:
    """In layout NCHW a pooling that is not square uses its height for both."""
    if operation.data_layout is not DataLayout.NCHW or operation.padding is not Padding.SAME:
        return None
    if operation.stride[0] != operation.stride[1]:
        return None
    height = operation.pool_size[0]
    return recomputed(call, replace(operation, pool_size=(height, height)))


BLIND_SUBTLE_FAULTS: dict[str, Planted] = {
    "blind-subtle/dilation": planted(Convolution2d, dilation_without_stride),
    "blind-subtle/even-kernel": planted(Convolution2d, even_kernel),
    "blind-subtle/pointwise": planted(Convolution2d, pointwise_padding),
    "blind-subtle/window": planted(Pooling2d, window_beyond_image),
    "blind-subtle/nchw-window": planted(Pooling2d, channels_of_columns),
    "blind-subtle/corners": planted(Resize, corners_of_one),
    "blind-subtle/rows": planted(FullyConnected, rows_beyond_tile),
    "blind-subtle/both-transposed": planted(BatchMatMul, both_transposed),
    "blind-subtle/both-broadcast": planted(BatchMatMul, both_broadcast),
    "blind-subtle/beta": planted(Softmax, beta_of_other_axis),
    "blind-subtle/thousand": planted(Reduce, first_thousand),
    "blind-subtle/mean": planted(Reduce, mean_keeps_zero_point),
    "blind-subtle/columns": planted(ArgMinMax, last_of_columns),
    "blind-subtle/hundred": planted(TopkV2, hundred_candidates),
    "blind-subtle/bytes": planted(Transpose, bytes_by_four),
    "blind-subtle/concat": planted(Concat, concat_as_it_is),
    "blind-subtle/left-scale": planted(ElementwiseBinary, scale_of_left),
    "blind-subtle/stored": planted(Comparison, compares_bytes),
    "blind-subtle/wrapped": planted(Cast, wrapped_bytes),
    "blind-subtle/leaky": planted(Activation, largest_of_both),
    "blind-subtle/bound": planted(Activation, no_lower_bound),
    "blind-subtle/elu": planted(Activation, elu_of_one),
    "blind-subtle/power": planted(ElementwiseBinary, power_by_logarithm),
    "blind-subtle/dividend": planted(ElementwiseBinary, sign_of_dividend),
    "blind-subtle/nan": planted(Comparison, equal_nan),
    "blind-subtle/half": planted(ElementwiseUnary, largest_half),
    "blind-subtle/rounds": planted(ElementwiseUnary, rounds_up),
    "blind-subtle/inverse": planted(ElementwiseUnary, inverse_of_zero),
    "blind-subtle/gather": planted(Gather, axis_before_last),
    "blind-subtle/time": planted(UnidirectionalSequenceLstm, batch_for_time, Fused),
}
"""By class and name."""
