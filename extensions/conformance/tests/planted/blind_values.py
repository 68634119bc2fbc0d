"""Wrong results of kinds that drivers and delegates had, invented without a look at the kit.

Each is the answer to a question about one layer: what it computes instead, where it is wrong at
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any  # the operation, whose class each function knows

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import HostTensorHandle, WorkloadInfo
from armpy.ops import (
    Activation,
    ArgMinMax,
    BatchMatMul,
    Cast,
    Comparison,
    Concat,
    Convolution2d,
    Cumulate,
    DepthToSpace,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    Gather,
    InstanceNormalization,
    L2Normalization,
    Lstm,
    OneHot,
    Pad,
    Pooling2d,
    Prelu,
    Quantize,
    Reduce,
    Resize,
    ReverseSequence,
    Select,
    Softmax,
    SpaceToBatchNd,
    Splitter,
    StridedSlice,
    TopkV2,
    Transpose,
    TransposeConvolution2d,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.movement import PaddingMode
from armpy.ops.operation import Array, Operation
from armpy.ops.pooling import PoolingAlgorithm
from armpy.ops.reduction import ReduceOperation
from armpy.ops.resizing import ResizeMethod
from armpy.ops.shapes import Padding, resolve_padding
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .faults import Call, Fault, Fused, Plain, Planted, spoil

Answer = Sequence[Array] | None
"""Wrong outputs; None where the outputs are right."""


class Wrong(Fault):
    """Other outputs of one kind of operation."""

    def __init__(self, operation: type[Operation], answer: Callable[[Any, Call], Answer]) -> None:
        self._operation = operation
        self._answer = answer

    def after(self, call: Call) -> None:
        if not isinstance(call.operation, self._operation):
            return
        with np.errstate(all="ignore"):
            outputs = self._answer(call.operation, call)
        for target, wrong in zip(call.outputs, outputs or (), strict=False):
            target[...] = wrong.astype(target.dtype, copy=False)


def recomputed(
    call: Call,
    operation: Operation | None = None,
    inputs: Sequence[Array | None] | None = None,
    infos: Sequence[TensorInfo | None] | None = None,
) -> list[Array]:
    """What CpuRef computes with another operation, other inputs or other infos."""
    arrays = call.inputs if inputs is None else inputs
    known = call.infos if infos is None else tuple(infos)
    info = WorkloadInfo("again", known, call.results, (None,) * len(arrays))
    workload = ReferenceWorkloadFactory().create_workload(operation or call.operation, info)
    results = [np.empty(i.known_shape, i.data_type.dtype) for i in call.results]
    workload.execute(
        [
            None if a is None or i is None else HostTensorHandle(i, np.array(a, order="C"))
            for i, a in zip(known, arrays, strict=True)
        ],
        [HostTensorHandle(i, a) for i, a in zip(call.results, results, strict=True)],
    )
    return results


def source(call: Call, index: int = 0) -> Array:
    """The elements of an input that is there."""
    array = call.inputs[index]
    assert array is not None
    return array


def info_of(call: Call, index: int = 0) -> TensorInfo:
    """The info of an input that is there."""
    info = call.infos[index]
    assert info is not None
    return info


def is_float(call: Call) -> bool:
    """Whether the first input holds float32."""
    return info_of(call).data_type is DataType.FLOAT32


def image_axes(layout: DataLayout) -> tuple[int, int]:
    """Axes of height and width."""
    return (1, 2) if layout is DataLayout.NHWC else (2, 3)


# --- Convolutions and pooling


def same_padding_before(operation: Any, call: Call) -> Answer:
    """Padding SAME has its odd element in front where the stride is even."""
    if operation.padding is not Padding.SAME or operation.stride[0] % 2:
        return None
    axes = image_axes(operation.data_layout)
    kernel_axes = axes if isinstance(operation, DepthwiseConvolution2d) else (1, 2)
    pairs = []
    for axis, (at, kernel_at) in enumerate(zip(axes, kernel_axes, strict=True)):
        kernel = source(call, 1).shape[kernel_at]
        size = source(call).shape[at]
        steps = operation.stride[axis], operation.dilation[axis]
        pairs.append(resolve_padding(Padding.SAME, size, kernel, *steps, axis)[::-1])
    return recomputed(call, replace(operation, padding=tuple(pairs)))


def swapped_dilation(operation: Convolution2d, call: Call) -> Answer:
    """The dilations of height and width are swapped."""
    if operation.padding is not Padding.SAME:
        return None
    return recomputed(call, replace(operation, dilation=operation.dilation[::-1]))


def pads_with_zero(operation: Convolution2d, call: Call) -> Answer:
    """Quantised images are padded with the byte 0."""
    info = info_of(call)
    if info.quantization is None or operation.padding is Padding.VALID:
        return None
    pads = [(0, 0)] * 4
    sizes: list[int] = list(info.known_shape)
    for axis, at in enumerate(image_axes(operation.data_layout)):
        kernel = source(call, 1).shape[1 + axis]
        steps = operation.stride[axis], operation.dilation[axis]
        pads[at] = resolve_padding(operation.padding, sizes[at], kernel, *steps, axis)
        sizes[at] += sum(pads[at])
    padded = np.pad(source(call), pads)
    infos = (replace(info, shape=tuple(sizes)), *call.infos[1:])
    wider = replace(operation, padding=Padding.VALID)
    return recomputed(call, wider, (padded, *call.inputs[1:]), infos)


def first_scale(operation: Operation, call: Call) -> Answer:
    """Of per-channel scales the first one is used for all channels."""
    info = info_of(call, 1)
    if info.quantization is None or info.quantization.axis is None:
        return None
    count = len(info.quantization.scales)
    scales = (info.quantization.scales[0],) * count
    weights = replace(info, quantization=replace(info.quantization, scales=scales))
    return recomputed(call, infos=(call.infos[0], weights, *call.infos[2:]))


def multiplier_order(operation: DepthwiseConvolution2d, call: Call) -> Answer:
    """The results of a channel multiplier lie multiplier by multiplier."""
    axis = -1 if operation.data_layout is DataLayout.NHWC else 1
    output = np.moveaxis(call.outputs[0], axis, -1)
    channels = source(call).shape[axis]
    parts = output.reshape(*output.shape[:-1], channels, -1)
    turned = np.swapaxes(parts, -1, -2).reshape(output.shape)
    return [np.moveaxis(turned, -1, axis)]


def bias_of_first_group(operation: Convolution2d, call: Call) -> Answer:
    """Every group of a grouped convolution gets the first group's bias."""
    channels = source(call).shape[-1 if operation.data_layout is DataLayout.NHWC else 1]
    depth = source(call, 1).shape[-1]
    if len(call.inputs) < 3 or call.inputs[2] is None or not 0 < depth < channels:
        return None
    groups = channels // depth
    bias = source(call, 2)
    return recomputed(call, inputs=(*call.inputs[:2], np.tile(bias[: len(bias) // groups], groups)))


def swapped_crops(operation: TransposeConvolution2d, call: Call) -> Answer:
    """The explicit padding before and after is swapped."""
    if isinstance(operation.padding, Padding):
        return None
    pairs = tuple((after, before) for before, after in operation.padding)
    return recomputed(call, replace(operation, padding=pairs))


def lost_tail(operation: FullyConnected, call: Call) -> Answer:
    """Of a depth beyond a vector of four, the elements after the last whole one are left out."""
    weights = source(call, 1)
    rest = weights.shape[-1] % 4
    if not is_float(call) or weights.shape[-1] < 4 or not rest:
        return None
    short = weights.copy()
    short[:, -rest:] = 0
    return recomputed(call, inputs=(call.inputs[0], short, *call.inputs[2:]))


def counts_padding(operation: Pooling2d, call: Call) -> Answer:
    """The average over a window at the edge is divided by the whole window's size."""
    if operation.algorithm is not PoolingAlgorithm.AVERAGE or not is_float(call):
        return None
    if operation.activation is not FusedActivation.NONE:
        return None
    sizes = source(call).shape
    output = call.outputs[0].copy()
    for axis, at in enumerate(image_axes(operation.data_layout)):
        size, kernel, stride = sizes[at], operation.pool_size[axis], operation.stride[axis]
        before, _ = resolve_padding(operation.padding, size, kernel, stride, 1, axis)
        starts = np.arange(output.shape[at]) * stride - before
        counts = np.minimum(starts + kernel, size) - np.maximum(starts, 0)
        shape = [1] * 4
        shape[at] = -1
        output *= (counts / kernel).reshape(shape).astype(np.float32)
    return [output]


def pools_zeros(operation: Pooling2d, call: Call) -> Answer:
    """A maximum at the edge is at least 0, which the padding holds."""
    if operation.algorithm is not PoolingAlgorithm.MAX or not is_float(call):
        return None
    output = call.outputs[0].copy()
    for axis, at in enumerate(image_axes(operation.data_layout)):
        size, kernel = source(call).shape[at], operation.pool_size[axis]
        stride = operation.stride[axis]
        before, _ = resolve_padding(operation.padding, size, kernel, stride, 1, axis)
        starts = np.arange(output.shape[at]) * stride - before
        is_edge = (starts < 0) | (starts + kernel > size)
        shape = [1] * 4
        shape[at] = -1
        output = np.where(is_edge.reshape(shape), np.maximum(output, 0), output)
    return [output]


# --- Movement of elements


def nearest_corners(operation: Resize, call: Call) -> Answer:
    """Nearest neighbours ignore that pixels have centres where the image shrinks."""
    height = image_axes(operation.data_layout)[0]
    shrinks = call.outputs[0].shape[height] < source(call).shape[height]
    if operation.method is not ResizeMethod.NEAREST_NEIGHBOR or not shrinks:
        return None
    return recomputed(call, replace(operation, half_pixel_centers=False))


def only_first_image(operation: Resize, call: Call) -> Answer:
    """All images of a batch become the first."""
    output = call.outputs[0]
    return [np.broadcast_to(output[:1], output.shape).copy()]


def many_inputs(operation: Concat, call: Call) -> Answer:
    """The last two of more than four inputs change places if they are of the same shape."""
    if len(call.inputs) < 5 or source(call, -1).shape != source(call, -2).shape:
        return None
    return recomputed(call, inputs=(*call.inputs[:-2], call.inputs[-1], call.inputs[-2]))


def even_splits(operation: Splitter, call: Call) -> Answer:
    """Each part of uneven sizes begins at a multiple of the first part's size."""
    whole = source(call)
    axis = next(
        (n for n, d in enumerate(whole.shape) if any(o.shape[n] != d for o in call.outputs)), 0
    )
    first = call.outputs[0].shape[axis]
    parts = []
    for index, output in enumerate(call.outputs):
        size = output.shape[axis]
        start = max(min(index * first, whole.shape[axis] - size), 0)
        parts.append(np.take(whole, range(start, start + size), axis))
    return parts


def backwards_from_begin(operation: StridedSlice, call: Call) -> Answer:
    """Negative strides beyond -1 give the elements in the order of the input."""
    stride = operation.stride or ()
    output = call.outputs[0]
    if output.ndim != len(stride) or min(stride, default=0) >= -1:
        return None
    axes = tuple(axis for axis, step in enumerate(stride) if step < -1)
    return [np.flip(output, axes)]


def first_batch_of_indices(operation: Gather, call: Call) -> Answer:
    """The indices of the first batch are used for all."""
    indices = source(call, 1)
    if operation.batch_dims != 1 or indices.size == 0:
        return None
    return recomputed(call, inputs=(call.inputs[0], np.broadcast_to(indices[:1], indices.shape)))


def inverse_at_rank_five(operation: Transpose, call: Call) -> Answer:
    """Beyond rank 4 the inverse of the permutation is taken."""
    if source(call).ndim < 5 or operation.perm is None:
        return None
    turned = source(call).transpose(np.argsort(operation.perm))
    return [turned.reshape(call.outputs[0].shape)]


def columns_first(operation: DepthToSpace, call: Call) -> Answer:
    """In layout NCHW the block's offsets are the inner part of the channels."""
    if operation.data_layout is not DataLayout.NCHW:
        return None
    n, c, h, w = source(call).shape
    size = operation.block_size
    parts = source(call).reshape(n, c // size**2, size, size, h, w)
    return [parts.transpose(0, 1, 4, 2, 5, 3).reshape(call.outputs[0].shape)]


def blocks_of_zero(operation: SpaceToBatchNd, call: Call) -> Answer:
    """Quantised images are padded with the byte 0."""
    info = info_of(call)
    if info.quantization is None or not any(map(any, operation.pad_list or ())):
        return None
    plain = replace(info, quantization=replace(info.quantization, zero_points=(0,)))
    results = tuple(replace(i, quantization=plain.quantization) for i in call.results)
    return recomputed(replace_results(call, results), infos=(plain, *call.infos[1:]))


def replace_results(call: Call, results: tuple[TensorInfo, ...]) -> Call:
    """The same layer with outputs of other infos."""
    return replace(call, results=results)


def mirrored_edge(operation: Pad, call: Call) -> Answer:
    """Mode REFLECT repeats the outermost element."""
    if operation.padding_mode is not PaddingMode.REFLECT:
        return None
    return recomputed(call, replace(operation, padding_mode=PaddingMode.SYMMETRIC))


def one_length(operation: ReverseSequence, call: Call) -> Answer:
    """All rows are as long as the first if the batch is the outer axis."""
    lengths = source(call, 1)
    if operation.batch_axis != 0 or not lengths.size:
        return None
    return recomputed(call, inputs=(call.inputs[0], np.full_like(lengths, lengths[0])))


def hot_from_the_end(operation: OneHot, call: Call) -> Answer:
    """Index -1 sets the last element."""
    indices = source(call)
    depth = call.outputs[0].shape[operation.axis]
    counted = np.where(indices == -1, indices.dtype.type(depth - 1), indices)
    return recomputed(call, inputs=(counted, *call.inputs[1:]))


# --- Elementwise


def left_aligned(operation: ElementwiseBinary, call: Call) -> Answer:
    """A vector beside a matrix that it fits on both sides is broadcast along the rows."""
    left, right = source(call), source(call, 1)
    if right.ndim != 1 or left.ndim != 2 or not left.shape[0] == left.shape[1] == len(right) > 1:
        return None
    column = np.broadcast_to(right[:, None], left.shape)
    info = replace(info_of(call, 1), shape=left.shape)
    return recomputed(call, inputs=(left, column), infos=(call.infos[0], info))


def larger_first(operation: ElementwiseBinary, call: Call) -> Answer:
    """The operands change places if the second one is the larger one."""
    if source(call).size >= source(call, 1).size:
        return None
    return recomputed(call, inputs=call.inputs[::-1], infos=call.infos[::-1])


def wraps(operation: ElementwiseBinary, call: Call) -> Answer:
    """Quantised sums wrap around instead of being saturated."""
    info = call.results[0]
    kinds = (DataType.QASYMM_S8, DataType.QASYMM_U8)
    if operation.operation is not BinaryOperation.ADD or info.data_type not in kinds:
        return None
    left, right = (_real(call, index) for index in (0, 1))
    assert info.quantization is not None
    total = np.round((left + right) / info.quantization.scales[0])
    stored = (total + info.quantization.zero_points[0]).astype(np.int64)
    limits = np.iinfo(np.int8 if info.data_type is DataType.QASYMM_S8 else np.uint8)
    is_beyond = (stored > limits.max) | (stored < limits.min)
    return [np.where(is_beyond, stored.astype(info.data_type.dtype), call.outputs[0])]


def _real(call: Call, index: int) -> Array:
    """The real numbers that a quantised input stands for."""
    quantization = info_of(call, index).quantization
    assert quantization is not None
    stored = source(call, index).astype(np.float64)
    return (stored - quantization.zero_points[0]) * quantization.scales[0]


def through_float(operation: ElementwiseBinary, call: Call) -> Answer:
    """Products of int32 are computed in float32."""
    is_product = operation.operation is BinaryOperation.MUL
    if not is_product or info_of(call).data_type is not DataType.SIGNED32:
        return None
    product = source(call).astype(np.float32) * source(call, 1).astype(np.float32)
    return [product.astype(np.int64).astype(np.int32)]


def compares_floats(operation: Comparison, call: Call) -> Answer:
    """Integers are compared as float32."""
    if info_of(call).data_type is not DataType.SIGNED32:
        return None
    infos = [replace(info_of(call, index), data_type=DataType.FLOAT32) for index in (0, 1)]
    arrays = [source(call, index).astype(np.float32) for index in (0, 1)]
    return recomputed(call, inputs=arrays, infos=infos)


def narrow_sums(operation: ElementwiseBinary, call: Call) -> Answer:
    """Integers of 64 bits are added as ones of 32 bits."""
    is_sum = operation.operation is BinaryOperation.ADD
    if not is_sum or info_of(call).data_type is not DataType.SIGNED64:
        return None
    return [(source(call) + source(call, 1)).astype(np.int32).astype(np.int64)]


def divides_towards_zero(operation: ElementwiseBinary, call: Call) -> Answer:
    """FLOOR_DIV of integers is truncated."""
    is_floor = operation.operation is BinaryOperation.FLOOR_DIV
    left, right = source(call), source(call, 1)
    if not is_floor or left.dtype.kind != "i" or not right.all():
        return None
    quotient, rest = np.divmod(left, right)
    return [quotient + ((rest != 0) & ((left < 0) != (right < 0)))]


def drops_nan(operation: ElementwiseBinary, call: Call) -> Answer:
    """The larger one of a NaN on the left and a number is the number."""
    if operation.operation is not BinaryOperation.MAXIMUM or not is_float(call):
        return None
    left, right = np.broadcast_arrays(source(call), source(call, 1))
    return [np.where(np.isnan(left), right, call.outputs[0])]


def rank_five(operation: ElementwiseBinary, call: Call) -> Answer:
    """Beyond rank 4 a broadcast operand is read without its stride of 0."""
    left, right = source(call), source(call, 1)
    if call.outputs[0].ndim < 5 or left.shape == right.shape:
        return None
    widened = np.resize(right, call.outputs[0].shape)
    info = replace(info_of(call, 1), shape=widened.shape)
    return recomputed(call, inputs=(left, widened), infos=(call.infos[0], info))


def other_clamp(operation: ElementwiseBinary, call: Call) -> Answer:
    """The fused RELU1 is a RELU6."""
    if operation.activation is not FusedActivation.RELU1:
        return None
    return recomputed(call, replace(operation, activation=FusedActivation.RELU6))


def no_scalar(operation: ElementwiseUnary, call: Call) -> Answer:
    """A tensor of rank 0 is not computed."""
    return [source(call)] if source(call).ndim == 0 else None


def rounds(operation: Cast, call: Call) -> Answer:
    """A float that becomes an int32 is rounded."""
    if not is_float(call) or call.results[0].data_type is not DataType.SIGNED32:
        return None
    return recomputed(call, inputs=(np.rint(source(call)),))


def truth_of_integer(operation: Cast, call: Call) -> Answer:
    """A float is true if its integral part is not 0."""
    if not is_float(call) or call.results[0].data_type is not DataType.BOOLEAN:
        return None
    return [np.trunc(source(call)) != 0]


def one_slope(operation: Prelu, call: Call) -> Answer:
    """The first slope is used for all channels."""
    alpha = source(call, 1)
    if not alpha.size:
        return None
    return recomputed(call, inputs=(call.inputs[0], np.full_like(alpha, alpha.reshape(-1)[0])))


def selects_rows(operation: Select, call: Call) -> Answer:
    """A vector as the condition selects whole rows of a square matrix."""
    condition, left, right = (source(call, index) for index in range(3))
    is_square = left.ndim == 2 and left.shape == right.shape == (len(left), len(left))
    if condition.ndim != 1 or not is_square or len(left) < 2 or len(condition) != len(left):
        return None
    return [np.where(condition[:, None], left, right)]


# --- Quantisation


def halves_to_even(operation: Quantize, call: Call) -> Answer:
    """Halves are rounded to even integers."""
    return recomputed(call, replace(operation, rounds_to_even=True))


def flips_the_sign(operation: Quantize, call: Call) -> Answer:
    """Between signed and unsigned bytes only the highest bit changes."""
    data_types = {info_of(call).data_type, call.results[0].data_type}
    if data_types != {DataType.QASYMM_S8, DataType.QASYMM_U8}:
        return None
    return [source(call).view(np.uint8) ^ np.uint8(0x80)]


def scale_of_first(operation: Dequantize, call: Call) -> Answer:
    """Of per-axis scales the first one is used for all."""
    info = info_of(call)
    if info.quantization is None or info.quantization.axis is None:
        return None
    scales = (info.quantization.scales[0],) * len(info.quantization.scales)
    return recomputed(
        call, infos=(replace(info, quantization=replace(info.quantization, scales=scales)),)
    )


class SharedTables(Fault):
    """Tables of quantised functions are kept by the function, whatever the quantisation."""

    def __init__(self) -> None:
        self._tables: dict[object, tuple[TensorInfo | None, TensorInfo]] = {}

    def after(self, call: Call) -> None:
        data_type = call.results[0].data_type
        if not isinstance(call.operation, Activation) or data_type is not DataType.QASYMM_S8:
            return
        first = (call.infos[0], call.results[0])
        known, result = self._tables.setdefault(call.operation, first)
        assert known is not None
        infos = (replace(info_of(call), quantization=known.quantization),)
        results = (replace(call.results[0], quantization=result.quantization),)
        call.outputs[0][...] = recomputed(replace_results(call, results), infos=infos)[0]


# --- Sums, orders and normalisation


def overflows(operation: Softmax, call: Call) -> Answer:
    """The largest element is not subtracted before the exponentials."""
    if not is_float(call) or not source(call).size:
        return None
    if np.max(source(call)) * operation.beta < 89:
        return None
    return [np.full_like(call.outputs[0], np.nan)]


def axis_at_rank_three(operation: Softmax, call: Call) -> Answer:
    """A negative axis counts from rank 4 where the rank is 3."""
    if source(call).ndim != 3 or operation.axis >= 0:
        return None
    return recomputed(call, replace(operation, axis=min(operation.axis + 4, 2)))


def starts_at_zero(operation: Reduce, call: Call) -> Answer:
    """A maximum is never below 0."""
    if operation.operation is not ReduceOperation.MAX or not is_float(call):
        return None
    return [np.maximum(call.outputs[0], 0)]


def mean_of_innermost(operation: Reduce, call: Call) -> Answer:
    """Means of float32 over more than one axis are divided by the innermost axis's size."""
    axes = operation.axes or ()
    is_mean = operation.operation is ReduceOperation.MEAN
    if not is_mean or not is_float(call) or len(axes) < 2 or not source(call).size:
        return None
    shape = source(call).shape
    others = np.prod([shape[axis] for axis in axes]) / shape[max(a % len(shape) for a in axes)]
    return [call.outputs[0] * np.float32(others)]


def signed_bytes(operation: ArgMinMax, call: Call) -> Answer:
    """Unsigned bytes are compared as signed ones."""
    info = info_of(call)
    if info.data_type is not DataType.QASYMM_U8:
        return None
    signed = replace(info, data_type=DataType.QASYMM_S8)
    inputs = (source(call).view(np.int8), *call.inputs[1:])
    return recomputed(call, inputs=inputs, infos=(signed, *call.infos[1:]))


def unsorted(operation: TopkV2, call: Call) -> Answer:
    """Where everything is asked for, nothing is sorted."""
    source_array = source(call)
    values, indices = call.outputs
    if values.shape != source_array.shape:
        return None
    order = np.broadcast_to(np.arange(values.shape[-1]), indices.shape)
    return [source_array, order]


def no_epsilon(operation: L2Normalization, call: Call) -> Answer:
    """Vectors of zeros become NaN."""
    if not is_float(call):
        return None
    axis = operation.axis
    is_zero = ~np.any(source(call), axis=axis, keepdims=True)
    return [np.where(is_zero, np.float32(np.nan), call.outputs[0])]


def sample_variance(operation: InstanceNormalization, call: Call) -> Answer:
    """The variance is divided by one less than the number of elements."""
    height, width = image_axes(operation.data_layout)
    count = source(call).shape[height] * source(call).shape[width]
    if count < 2:
        return None
    ratio = np.sqrt((count - 1) / count)
    return [(call.outputs[0].astype(np.float32) - operation.beta) * ratio + operation.beta]


def no_cell_clip(operation: Lstm, call: Call) -> Answer:
    """The cells are not clipped."""
    return recomputed(call, replace(operation, cell_clip=0.0)) if operation.cell_clip else None


def first_matrix(operation: BatchMatMul, call: Call) -> Answer:
    """Of several matrices on the right the first one is multiplied by one on the left."""
    left, right = source(call), source(call, 1)
    if left.ndim != 3 or right.ndim != 3 or len(left) != 1 or len(right) < 2:
        return None
    return recomputed(call, inputs=(left, np.broadcast_to(right[:1], right.shape)))


def short_mantissas(operation: BatchMatMul, call: Call) -> Answer:
    """Factors of float32 have mantissas of 10 bits."""
    if not is_float(call):
        return None
    mask = np.uint32(0xFFFFE000)
    short = [(np.array(source(call, n)).view(np.uint32) & mask).view(np.float32) for n in (0, 1)]
    return recomputed(call, inputs=short)


def half_sums(operation: FullyConnected, call: Call) -> Answer:
    """Products of float16 are added in float16."""
    if info_of(call).data_type is not DataType.FLOAT16 or call.outputs[0].ndim != 2:
        return None
    weights = source(call, 1)
    rows = source(call).reshape(-1, weights.shape[-1])
    total = np.zeros(call.outputs[0].shape, np.float16)
    for index in range(weights.shape[-1]):
        total += rows[:, index, None] * weights[None, :, index]
    if len(call.inputs) > 2 and call.inputs[2] is not None:
        total += source(call, 2)
    return None if operation.activation is not FusedActivation.NONE else [total]


def first_rows(operation: FullyConnected, call: Call) -> Answer:
    """Where the number of dimensions is kept, each matrix gets the first one's results."""
    output = call.outputs[0]
    if not operation.keep_num_dims or output.ndim < 3 or output.shape[0] < 2:
        return None
    return [np.broadcast_to(output[:1], output.shape).copy()]


def inclusive_in_reverse(operation: Cumulate, call: Call) -> Answer:
    """Sums from the end include their own element."""
    if not operation.reverse or not operation.exclusive:
        return None
    return recomputed(call, replace(operation, exclusive=False))


def odd_width(operation: Pooling2d, call: Call) -> Answer:
    """With a stride of 3 the last window of an image whose width is odd is wrong."""
    width = source(call).shape[image_axes(operation.data_layout)[1]]
    if operation.stride[1] == 3 and width % 2:
        spoil(call.outputs[0])
    return None


def planted(
    operation: type[Operation], answer: Callable[[Any, Call], Answer], make: type[Plain] = Plain
) -> Planted:
    """A backend that gives wrong answers for one kind of operation."""
    return Planted(f"{operation.__name__}/", lambda: make(Wrong(operation, answer)))


BLIND_VALUE_FAULTS: dict[str, Planted] = {
    "blind-window/same": planted(Convolution2d, same_padding_before),
    "blind-window/dilation": planted(Convolution2d, swapped_dilation),
    "blind-window/zero-point": planted(Convolution2d, pads_with_zero),
    "blind-window/scales": planted(DepthwiseConvolution2d, first_scale),
    "blind-window/multiplier": planted(DepthwiseConvolution2d, multiplier_order, Fused),
    "blind-window/groups": planted(Convolution2d, bias_of_first_group),
    "blind-window/crops": planted(TransposeConvolution2d, swapped_crops),
    "blind-window/average": planted(Pooling2d, counts_padding),
    "blind-window/maximum": planted(Pooling2d, pools_zeros),
    "blind-window/odd-width": planted(Pooling2d, odd_width),
    "blind-move/nearest": planted(Resize, nearest_corners),
    "blind-move/first-image": planted(Resize, only_first_image),
    "blind-move/many-inputs": planted(Concat, many_inputs),
    "blind-move/uneven": planted(Splitter, even_splits),
    "blind-move/backwards": planted(StridedSlice, backwards_from_begin),
    "blind-move/batched-indices": planted(Gather, first_batch_of_indices),
    "blind-move/inverse": planted(Transpose, inverse_at_rank_five),
    "blind-move/depth-to-space": planted(DepthToSpace, columns_first),
    "blind-move/blocks": planted(SpaceToBatchNd, blocks_of_zero),
    "blind-move/reflect": planted(Pad, mirrored_edge, Fused),
    "blind-move/lengths": planted(ReverseSequence, one_length),
    "blind-move/one-hot": planted(OneHot, hot_from_the_end),
    "blind-element/left-aligned": planted(ElementwiseBinary, left_aligned),
    "blind-element/larger-first": planted(ElementwiseBinary, larger_first),
    "blind-element/wraps": planted(ElementwiseBinary, wraps),
    "blind-element/through-float": planted(ElementwiseBinary, through_float),
    "blind-element/compares-floats": planted(Comparison, compares_floats),
    "blind-element/narrow-sums": planted(ElementwiseBinary, narrow_sums),
    "blind-element/truncates": planted(ElementwiseBinary, divides_towards_zero),
    "blind-element/drops-nan": planted(ElementwiseBinary, drops_nan),
    "blind-element/rank-five": planted(ElementwiseBinary, rank_five),
    "blind-element/clamp": planted(ElementwiseBinary, other_clamp, Fused),
    "blind-element/scalar": planted(ElementwiseUnary, no_scalar),
    "blind-element/rounds": planted(Cast, rounds),
    "blind-element/truth": planted(Cast, truth_of_integer),
    "blind-element/slope": planted(Prelu, one_slope),
    "blind-element/rows": planted(Select, selects_rows),
    "blind-scale/even": planted(Quantize, halves_to_even),
    "blind-scale/sign": planted(Quantize, flips_the_sign),
    "blind-scale/first": planted(Dequantize, scale_of_first),
    "blind-scale/tables": Planted("Activation/", lambda: Plain(SharedTables())),
    "blind-sum/overflows": planted(Softmax, overflows),
    "blind-sum/axis": planted(Softmax, axis_at_rank_three),
    "blind-sum/from-zero": planted(Reduce, starts_at_zero),
    "blind-sum/mean": planted(Reduce, mean_of_innermost),
    "blind-sum/signed-bytes": planted(ArgMinMax, signed_bytes),
    "blind-sum/unsorted": planted(TopkV2, unsorted),
    "blind-sum/zeros": planted(L2Normalization, no_epsilon),
    "blind-sum/variance": planted(InstanceNormalization, sample_variance),
    "blind-sum/cell-clip": planted(Lstm, no_cell_clip),
    "blind-sum/first-matrix": planted(BatchMatMul, first_matrix),
    "blind-sum/mantissas": planted(BatchMatMul, short_mantissas),
    "blind-sum/half": planted(FullyConnected, half_sums),
    "blind-sum/tail": planted(FullyConnected, lost_tail),
    "blind-sum/first-rows": planted(FullyConnected, first_rows),
    "blind-sum/exclusive": planted(Cumulate, inclusive_in_reverse),
}
"""By class and name."""
