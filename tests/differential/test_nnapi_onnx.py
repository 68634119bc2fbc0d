"""NNAPI's operations on float32 against ONNX Runtime's operators of the same definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from armpy_nnapi import FuseCode, OperationCode
from tests.differential.nnapi_peers import (
    BOOL8,
    BOUNDS,
    FLOAT32,
    INT32,
    QUANTIZED,
    Array,
    Draw,
    Expected,
    Input,
    Instance,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    names,
    number,
)
from tests.differential.onnx_oracle import onnx_or_skip, run_onnx

onnx_or_skip()

_O = OperationCode
Attributes = dict[str, Any]  # Any: attribute values of many types


def reals(values: Array, *, magnitude: float = 1.0) -> Expected:
    """A float32 output, which may differ by its tolerance."""
    return Expected(FLOAT32, values.astype(np.float64), magnitude=magnitude)


def source_of(draw: Draw, *, rank: int | None = None, low: float = -3, high: float = 3) -> Tensor:
    """A float32 tensor."""
    return draw.tensor(FLOAT32, draw.shape(rank), low, high)


def nhwc(values: Array) -> Array:
    """An NCHW tensor, or filters (o, i, h, w), as NHWC, or (o, h, w, i)."""
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


PAIRS = {
    _O.ADD: "Add",
    _O.SUB: "Sub",
    _O.MUL: "Mul",
    _O.DIV: "Div",
    _O.MAXIMUM: "Max",
    _O.MINIMUM: "Min",
    _O.POW: "Pow",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", PAIRS, ids=names)
def test_pairs(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        low = 0.2 if code in (_O.DIV, _O.POW) else -3
        first, second = (draw.tensor(FLOAT32, s, low, 3) for s in draw.broadcast_shapes())
        (answer,) = run_onnx(PAIRS[code], [first.stored, second.stored])
        has_fuse = code in (_O.ADD, _O.SUB, _O.MUL, _O.DIV)
        fuse = draw.pick(tuple(FuseCode)) if has_fuse else FuseCode.NONE
        inputs = [first, second, *([integer(fuse)] if has_fuse else [])]
        return Instance(code, inputs, [reals(np.clip(answer, *BOUNDS[fuse]))])

    check_instances(make)


COMPARISONS = {
    _O.EQUAL: "Equal",
    _O.LESS: "Less",
    _O.LESS_EQUAL: "LessOrEqual",
    _O.GREATER: "Greater",
    _O.GREATER_EQUAL: "GreaterOrEqual",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", COMPARISONS, ids=names)
def test_comparisons(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        first, second = (draw.tensor(INT32, s, -2, 2) for s in draw.broadcast_shapes())
        (answer,) = run_onnx(COMPARISONS[code], [first.stored, second.stored])
        return Instance(code, [first, second], [Expected(BOOL8, answer)])

    check_instances(make)


LOGIC = {_O.LOGICAL_AND: "And", _O.LOGICAL_OR: "Or", _O.LOGICAL_NOT: "Not"}


@pytest.mark.parametrize("code", LOGIC, ids=names)
def test_logic(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        operands = [draw.tensor(BOOL8, shape) for shape in draw.broadcast_shapes()]
        operands = operands[: 1 if code is _O.LOGICAL_NOT else 2]
        (answer,) = run_onnx(LOGIC[code], [operand.stored for operand in operands])
        return Instance(code, operands, [Expected(BOOL8, answer)])

    check_instances(make)


UNARY: dict[OperationCode, tuple[str, float, float]] = {
    _O.ABS: ("Abs", -3, 3),
    _O.NEG: ("Neg", -3, 3),
    _O.EXP: ("Exp", -4, 4),
    _O.LOG: ("Log", 0.05, 20),
    _O.SIN: ("Sin", -10, 10),
    _O.SQRT: ("Sqrt", 0, 20),
    _O.FLOOR: ("Floor", -5, 5),
    _O.RELU: ("Relu", -3, 3),
    _O.LOGISTIC: ("Sigmoid", -8, 8),
    _O.TANH: ("Tanh", -4, 4),
    _O.HARD_SWISH: ("HardSwish", -5, 5),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", UNARY, ids=names)
def test_unary(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        operator, low, high = UNARY[code]
        source = source_of(draw, low=low, high=high)
        (answer,) = run_onnx(operator, [source.stored])
        return Instance(code, [source], [reals(answer)])

    check_instances(make)


def test_elu() -> None:
    def make(draw: Draw) -> Instance:
        source, alpha = source_of(draw), draw.number(0.1, 2)
        (answer,) = run_onnx("Elu", [source.stored], alpha=alpha)
        return Instance(_O.ELU, [source, number(alpha)], [reals(answer)])

    check_instances(make)


def test_prelu() -> None:
    def make(draw: Draw) -> Instance:
        source = source_of(draw)
        shape = tuple(1 if draw.chance(0.3) else dim for dim in source.shape)
        alpha = draw.tensor(FLOAT32, shape[draw.size(len(shape) - 1, 0) :])
        (answer,) = run_onnx("PRelu", [source.stored, alpha.stored])
        return Instance(_O.PRELU, [source, alpha], [reals(answer)])

    check_instances(make)


def test_select() -> None:
    def make(draw: Draw) -> Instance:
        first = source_of(draw)
        second, condition = (draw.tensor(kind, first.shape) for kind in (FLOAT32, BOOL8))
        (answer,) = run_onnx("Where", [condition.stored, first.stored, second.stored])
        return Instance(_O.SELECT, [condition, first, second], [Expected(FLOAT32, answer)])

    check_instances(make)


LINES: dict[OperationCode, tuple[str, Attributes]] = {
    _O.SOFTMAX: ("Softmax", {}),
    _O.LOG_SOFTMAX: ("LogSoftmax", {}),
    _O.L2_NORMALIZATION: ("LpNormalization", {"p": 2}),
}


@pytest.mark.parametrize("code", LINES, ids=names)
def test_functions_along_an_axis(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        source = source_of(draw)
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        operator, attributes = LINES[code]
        (answer,) = run_onnx(operator, [source.stored], axis=axis, **attributes)
        beta = [] if code is _O.L2_NORMALIZATION else [number(1.0)]
        return Instance(code, [source, *beta, integer(axis)], [reals(answer)])

    check_instances(make)


def test_local_response_normalization() -> None:
    def make(draw: Draw) -> Instance:
        source, radius = source_of(draw, rank=4), draw.size(3, 0)
        bias, alpha, beta = draw.number(0.5, 3), draw.number(0.1, 2), draw.number(0.1, 1)
        size = 2 * radius + 1
        # ONNX divides alpha by the size.
        (answer,) = run_onnx(
            "LRN", [source.stored], size=size, bias=bias, alpha=alpha * size, beta=beta
        )
        inputs = [source, integer(radius), number(bias), number(alpha), number(beta), integer(1)]
        return Instance(_O.LOCAL_RESPONSE_NORMALIZATION, inputs, [reals(answer)])

    check_instances(make)


def test_instance_normalization() -> None:
    def make(draw: Draw) -> Instance:
        source = source_of(draw, rank=4)
        gamma, beta, epsilon = draw.number(-2, 2), draw.number(-2, 2), draw.number(0.01, 0.1)
        factors = [np.full(source.shape[1], x, np.float32) for x in (gamma, beta)]
        (answer,) = run_onnx("InstanceNormalization", [source.stored, *factors], epsilon=epsilon)
        inputs = [source, *map(number, (gamma, beta, epsilon)), boolean(True)]
        return Instance(_O.INSTANCE_NORMALIZATION, inputs, [reals(answer, magnitude=2)])

    check_instances(make)


def windows(draw: Draw, extents: Sequence[int]) -> tuple[list[int], list[int], list[Input]]:
    """ONNX's pads and strides, and NNAPI's arguments that say the same."""
    top, left, bottom, right = (draw.size(extents[i % 2] - 1, 0) for i in range(4))
    strides = [draw.size(3), draw.size(3)]
    arguments = (left, right, top, bottom, strides[1], strides[0])
    return [top, left, bottom, right], strides, [integer(n) for n in arguments]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", [_O.CONV_2D, _O.GROUPED_CONV_2D, _O.DEPTHWISE_CONV_2D], ids=names)
def test_convolutions(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        groups = 1 if code is _O.CONV_2D else draw.size(3)
        depth = 1 if code is _O.DEPTHWISE_CONV_2D else draw.size(3)
        per_group, kernel = draw.size(3), [draw.size(3), draw.size(3)]
        is_grouped = code is _O.GROUPED_CONV_2D
        dilations = [1 if is_grouped else draw.size(2) for _ in range(2)]
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads, strides, arguments = windows(draw, extents)
        shape = (draw.size(2), depth * groups, *(draw.size(e + 3, e) for e in extents))
        image = draw.tensor(FLOAT32, shape)
        filter_ = draw.tensor(FLOAT32, (per_group * groups, depth, *kernel))
        bias = draw.tensor(FLOAT32, (per_group * groups,))
        (answer,) = run_onnx(
            "Conv",
            [image.stored, filter_.stored, bias.stored],
            group=groups,
            pads=pads,
            strides=strides,
            dilations=dilations,
        )
        stored = nhwc(filter_.stored)
        middle = [integer(groups)] if is_grouped else []
        if code is _O.DEPTHWISE_CONV_2D:
            stored = np.ascontiguousarray(filter_.stored.transpose(1, 2, 3, 0))
            middle = [integer(per_group)]
        inputs: list[Input] = [image, Tensor(FLOAT32, stored), bias, *arguments, *middle]
        inputs += [integer(0), boolean(True)]
        inputs += [] if is_grouped else [integer(dilations[1]), integer(dilations[0])]
        return Instance(code, inputs, [reals(answer, magnitude=2)])

    check_instances(make)


def test_transpose_convolution() -> None:
    def make(draw: Draw) -> Instance:
        depth, count, kernel = draw.size(3), draw.size(3), [draw.size(4), draw.size(4)]
        strides, sizes = [draw.size(3), draw.size(3)], [draw.size(4), draw.size(4)]
        pads = [min(draw.size(k - 1, 0), (k - 1) // 2) for k in (*kernel, *kernel)]
        image = draw.tensor(FLOAT32, (draw.size(2), depth, *sizes))
        filter_ = draw.tensor(FLOAT32, (depth, count, *kernel))
        bias = draw.tensor(FLOAT32, (count,))
        (answer,) = run_onnx(
            "ConvTranspose",
            [image.stored, filter_.stored, bias.stored],
            pads=pads,
            strides=strides,
        )
        stored = np.ascontiguousarray(filter_.stored.transpose(1, 2, 3, 0))
        top, left, bottom, right = pads
        scalars = (left, right, top, bottom, strides[1], strides[0], 0)
        inputs = [image, Tensor(FLOAT32, stored), bias, *map(integer, scalars), boolean(True)]
        return Instance(_O.TRANSPOSE_CONV_2D, inputs, [reals(answer, magnitude=2)])

    check_instances(make)


POOLINGS: dict[OperationCode, tuple[str, Attributes]] = {
    _O.AVERAGE_POOL_2D: ("AveragePool", {"count_include_pad": 0}),
    _O.MAX_POOL_2D: ("MaxPool", {}),
    _O.L2_POOL_2D: ("LpPool", {"p": 2}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", POOLINGS, ids=names)
def test_pooling(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kernel = [draw.size(3), draw.size(3)]
        pads, strides, arguments = windows(draw, kernel)
        if code is _O.L2_POOL_2D:
            # ONNX adds up, and has no number of cells to divide by where there is padding.
            pads, arguments = [0] * 4, [*[integer(0)] * 4, *arguments[4:]]
        image = draw.tensor(
            FLOAT32, (draw.size(2), draw.size(3), *(draw.size(k + 3, k) for k in kernel))
        )
        operator, attributes = POOLINGS[code]
        (answer,) = run_onnx(
            operator,
            [image.stored],
            kernel_shape=kernel,
            pads=pads,
            strides=strides,
            **attributes,
        )
        if code is _O.L2_POOL_2D:
            answer = answer / np.sqrt(kernel[0] * kernel[1])
        inputs = [image, *arguments, integer(kernel[1]), integer(kernel[0]), integer(0)]
        return Instance(code, [*inputs, boolean(True)], [reals(answer)])

    check_instances(make)


def test_fully_connected() -> None:
    def make(draw: Draw) -> Instance:
        depth, units = draw.size(5), draw.size(4)
        source = draw.tensor(FLOAT32, (draw.size(3), depth))
        weights, bias = (draw.tensor(FLOAT32, shape) for shape in ((units, depth), (units,)))
        (answer,) = run_onnx("Gemm", [source.stored, weights.stored, bias.stored], transB=1)
        inputs = [source, weights, bias, integer(0)]
        return Instance(_O.FULLY_CONNECTED, inputs, [reals(answer, magnitude=2)])

    check_instances(make)


REDUCTIONS = {
    _O.MEAN: "ReduceMean",
    _O.REDUCE_MAX: "ReduceMax",
    _O.REDUCE_MIN: "ReduceMin",
    _O.REDUCE_PROD: "ReduceProd",
    _O.REDUCE_SUM: "ReduceSum",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", REDUCTIONS, ids=names)
def test_reductions(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        source, keep_dims = source_of(draw, low=-1.2, high=1.2), draw.chance()
        rank = source.stored.ndim
        axes = [axis - draw.pick((0, rank)) for axis in draw.permutation(rank)[: draw.size(rank)]]
        (answer,) = run_onnx(
            REDUCTIONS[code], [source.stored, np.array(axes)], keepdims=int(keep_dims)
        )
        flag = integer(keep_dims) if code is _O.MEAN else boolean(keep_dims)
        output = reals(answer if answer.ndim else answer.reshape(1))
        return Instance(code, [source, integers(axes), flag], [output])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.ARGMAX, _O.ARGMIN], ids=names)
def test_positions_of_extremes(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(INT32, draw.shape(), -3, 3)
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        operator = "ArgMax" if code is _O.ARGMAX else "ArgMin"
        (answer,) = run_onnx(operator, [source.stored], axis=axis, keepdims=0)
        answer = answer if answer.ndim else answer.reshape(1)
        return Instance(code, [source, integer(axis)], [Expected(INT32, answer.astype(np.int32))])

    check_instances(make)


Move = Callable[[Draw, Tensor], tuple[str, list[Array], Attributes, list[Input]]]


def _moves() -> dict[OperationCode, tuple[int | None, Move]]:
    """By operation: a rank, and ONNX's operator, inputs, attributes and NNAPI's arguments."""

    def transpose(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        perm = draw.permutation(source.stored.ndim)
        return "Transpose", [], {"perm": perm}, [integers(perm)]

    def tile(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        times = [draw.size(3) for _ in source.shape]
        return "Tile", [np.array(times)], {}, [integers(times)]

    def gather(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        places = draw.tensor(INT32, draw.shape(draw.size(2)), 0, source.shape[axis] - 1)
        return "Gather", [places.stored], {"axis": axis}, [integer(axis), places]

    def pad(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        pairs = [[draw.size(2, 0), draw.size(2, 0)] for _ in source.shape]
        return "Pad", [np.array(pairs).T.reshape(-1)], {}, [integers(pairs)]

    def slice_(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        begin = [draw.size(dim - 1, 0) for dim in source.shape]
        sizes = [draw.size(dim - b) for dim, b in zip(source.shape, begin, strict=True)]
        ends = [b + n for b, n in zip(begin, sizes, strict=True)]
        operands = [np.array(begin), np.array(ends)]
        return "Slice", operands, {}, [integers(begin), integers(sizes)]

    def expand(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        axis = draw.size(source.stored.ndim, -source.stored.ndim - 1)
        return "Unsqueeze", [np.array([axis])], {}, [integer(axis)]

    def to_space(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        return "DepthToSpace", [], {"blocksize": 2}, [integer(2), boolean(True)]

    def to_depth(draw: Draw, source: Tensor) -> tuple[str, list[Array], Attributes, list[Input]]:
        return "SpaceToDepth", [], {"blocksize": 2}, [integer(2), boolean(True)]

    return {
        _O.TRANSPOSE: (None, transpose),
        _O.TILE: (None, tile),
        _O.GATHER: (None, gather),
        _O.PAD: (None, pad),
        _O.SLICE: (None, slice_),
        _O.EXPAND_DIMS: (3, expand),
        _O.DEPTH_TO_SPACE: (4, to_space),
        _O.SPACE_TO_DEPTH: (4, to_depth),
    }


MOVES = _moves()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", MOVES, ids=names)
def test_movement(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        rank, move = MOVES[code]
        shape = draw.shape(rank, 3)
        if code is _O.DEPTH_TO_SPACE:
            shape = (shape[0], shape[1] * 4, *shape[2:])
        if code is _O.SPACE_TO_DEPTH:
            shape = (*shape[:2], shape[2] * 2, shape[3] * 2)
        source = draw.tensor(FLOAT32, shape)
        operator, more, attributes, arguments = move(draw, source)
        (answer,) = run_onnx(operator, [source.stored, *more], **attributes)
        return Instance(code, [source, *arguments], [Expected(FLOAT32, answer)])

    check_instances(make)


def test_concatenation() -> None:
    def make(draw: Draw) -> Instance:
        shape = draw.shape()
        axis = draw.size(len(shape) - 1, 0)
        shapes = [(*shape[:axis], draw.size(3), *shape[axis + 1 :]) for _ in range(draw.size(4))]
        parts = [draw.tensor(FLOAT32, s) for s in shapes]
        (answer,) = run_onnx("Concat", [part.stored for part in parts], axis=axis)
        return Instance(_O.CONCATENATION, [*parts, integer(axis)], [Expected(FLOAT32, answer)])

    check_instances(make)


def test_split() -> None:
    def make(draw: Draw) -> Instance:
        count, shape = draw.size(4), list(draw.shape())
        axis = draw.size(len(shape) - 1, -len(shape))
        shape[axis] *= count
        source = draw.tensor(FLOAT32, shape)
        outputs = [f"part_{i}" for i in range(count)]
        parts = run_onnx("Split", [source.stored], outputs=outputs, axis=axis, num_outputs=count)
        expected = [Expected(FLOAT32, part) for part in parts]
        return Instance(_O.SPLIT, [source, integer(axis), integer(count)], expected)

    check_instances(make)


def test_topk() -> None:
    """Of different elements; ONNX prefers the smaller index where NNAPI prefers the larger."""

    def make(draw: Draw) -> Instance:
        source = source_of(draw)
        k = draw.size(source.shape[-1])
        values, positions = run_onnx(
            "TopK", [source.stored, np.array([k])], outputs=("values", "positions")
        )
        outputs = [Expected(FLOAT32, values), Expected(INT32, positions.astype(np.int32))]
        return Instance(_O.TOPK_V2, [source, integer(k)], outputs)

    check_instances(make)


@pytest.mark.parametrize("code", [_O.RESIZE_BILINEAR, _O.RESIZE_NEAREST_NEIGHBOR], ids=names)
def test_resizing(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(FLOAT32, (draw.size(2), draw.size(2), draw.size(6), draw.size(6)))
        mode = draw.pick(("asymmetric", "align_corners", "half_pixel"))
        # Sizes that divide, so that positions are exact however they are computed.
        sizes = [
            draw.size(8) if code is _O.RESIZE_BILINEAR else dim * draw.size(3)
            for dim in source.shape[2:]
        ]
        if code is _O.RESIZE_NEAREST_NEIGHBOR and mode == "align_corners":
            mode = "asymmetric"
        shape = np.array([*source.shape[:2], *sizes])
        (answer,) = run_onnx(
            "Resize",
            [source.stored, None, None, shape],
            mode="linear" if code is _O.RESIZE_BILINEAR else "nearest",
            coordinate_transformation_mode=mode,
            nearest_mode="floor" if mode == "asymmetric" else "round_prefer_ceil",
        )
        switches = [mode == "align_corners", mode == "half_pixel"]
        inputs = [source, integer(sizes[1]), integer(sizes[0]), boolean(True)]
        return Instance(code, [*inputs, *map(boolean, switches)], [reals(answer)])

    check_instances(make)


def regions(draw: Draw, count: int, height: int, width: int) -> Tensor:
    """Boxes (x1, y1, x2, y2) of quarters of pixels within an image."""
    corners = np.empty((count, 4), np.float32)
    for box in corners:
        box[0::2] = sorted(draw.size(4 * width, 0) / 4 for _ in range(2))
        box[1::2] = sorted(draw.size(4 * height, 0) / 4 for _ in range(2))
    return Tensor(FLOAT32, corners)


@pytest.mark.parametrize("code", [_O.ROI_ALIGN, _O.ROI_POOLING], ids=names)
def test_regions(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        batches, depth, height, width = draw.size(2), draw.size(2), draw.size(7, 2), draw.size(7, 2)
        image, count = draw.tensor(FLOAT32, (batches, depth, height, width)), draw.size(3)
        stride, sizes = draw.pick((0.5, 1.0, 2.0)), [draw.size(3), draw.size(3)]
        rois = regions(draw, count, int(height * stride), int(width * stride))
        # A cell of a region is at least one pixel wide; ONNX takes 0 for what is outside then.
        limits = [width * stride - stride, height * stride - stride]
        rois.stored[:, :2] = np.minimum(rois.stored[:, :2], limits)
        owners = integers(sorted(draw.size(batches - 1, 0) for _ in range(count)))
        inputs = [image, rois, owners, integer(sizes[0]), integer(sizes[1])]
        inputs += [number(stride), number(stride)]
        if code is _O.ROI_ALIGN:
            samples = draw.size(3, 0)
            (answer,) = run_onnx(
                "RoiAlign",
                [image.stored, rois.stored, owners.stored.astype(np.int64)],
                coordinate_transformation_mode="output_half_pixel",
                output_height=sizes[0],
                output_width=sizes[1],
                sampling_ratio=samples,
                spatial_scale=1 / stride,
            )
            inputs += [integer(samples), integer(samples)]
        else:
            rows = np.concatenate([owners.stored[:, None].astype(np.float32), rois.stored], 1)
            (answer,) = run_onnx(
                "MaxRoiPool", [image.stored, rows], pooled_shape=sizes, spatial_scale=1 / stride
            )
        return Instance(code, [*inputs, boolean(True)], [reals(answer)])

    check_instances(make)


def _scale(value: float) -> Array:
    """A scale as an input."""
    return np.array(value, np.float32)


def test_quantize() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        source = source_of(draw)
        output = draw.output(kind, source.real)
        zero_point = np.array(output.zero_point, kind.traits.dtype)
        (answer,) = run_onnx("QuantizeLinear", [source.stored, _scale(output.scale), zero_point])
        # ONNX rounds halves to even, NNAPI away from zero; there are none.
        expected = Expected(kind, answer, output.scale, output.zero_point)
        return Instance(_O.QUANTIZE, [source], [expected])

    check_instances(make)


def test_dequantize() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        source = draw.tensor(kind, draw.shape())
        zero_point = np.array(source.zero_point, kind.traits.dtype)
        (answer,) = run_onnx("DequantizeLinear", [source.stored, _scale(source.scale), zero_point])
        return Instance(_O.DEQUANTIZE, [source], [reals(answer)])

    check_instances(make)
