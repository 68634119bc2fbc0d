"""Two layers that look like ones that a compiler merges, moves or takes out, and may not be.

Each row of the table is a network of two pairs of layers of one input: the pair that has to stay
as it is, and beside it a twin that may be merged. Other networks have equal layers of one input
that differ in an attribute, or in the end of a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BatchToSpaceNd,
    BinaryOperation,
    BroadcastTo,
    Cast,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    Cumulate,
    DepthToSpace,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    ExpandDims,
    FullyConnected,
    FusedActivation,
    Gather,
    L2Normalization,
    LayerNormalization,
    Operation,
    Pad,
    Padding,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ResizeMethod,
    ReverseV2,
    Slice,
    Softmax,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.patterns import RELU, RELU6, SAME, TYPES, Builder
from armpy_conformance.pattern import Pattern

Step = Callable[[Builder, Value, Value], Value]
"""Adds a layer that reads a value; the last operand is the network's input."""

_Pair = tuple[Step, Step]

_FLOAT, _BYTES = TYPES[:1], TYPES[1:]
_IMAGE, _CUBE, _SQUARE, _ROWS, _FEW = (2, 5, 6, 4), (3, 3, 3), (4, 4), (3, 7), (2, 3)

_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.25, 3e38)
"""Numbers for which a tensor minus itself, divided by itself, or times 0 is not a number."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A pair of layers that may not be merged."""

    shape: tuple[int, ...]  # of the input
    pair: _Pair
    why: str  # it may not be merged
    twin: _Pair | None = None  # may be merged
    types: tuple[DataType, ...] = _FLOAT
    elements: tuple[float, ...] = field(default=())  # of the input, of chance if left out


# --- Layers


def _move(operation: Operation) -> Step:
    """A layer that moves elements."""
    return lambda b, value, x: b.move(operation, value)


def _compute(operation: Operation) -> Step:
    """A layer of floats, whose output's type is the operation's own."""
    return lambda b, value, x: b.net.add(operation, value)


def _activated(function: ActivationFunction, a: float = 0.0, lower: float = 0.0) -> Step:
    operation = Activation(function, a, lower)
    return lambda b, value, x: b.net.add(operation, value, output=value.info.with_shape(None))


def _clamped(upper: float, lower: float) -> Step:
    return _activated(ActivationFunction.BOUNDED_RELU, upper, lower)


def _unary(function: str) -> Step:
    return _compute(ElementwiseUnary(UnaryOperation[function]))


def _constant(b: Builder, elements: object) -> Value:
    return b.net.constant(np.asarray(elements, np.float32))


def _with(
    function: str, elements: object, activation: FusedActivation = FusedActivation.NONE
) -> Step:
    """A function of a value and a constant."""
    operation = ElementwiseBinary(BinaryOperation[function], activation)
    return lambda b, value, x: b.net.add(operation, value, _constant(b, elements))


def _of(function: str, elements: object) -> Step:
    """A function of a constant and a value."""
    operation = ElementwiseBinary(BinaryOperation[function])
    return lambda b, value, x: b.net.add(operation, _constant(b, elements), value)


def _with_itself(function: str) -> Step:
    operation = ElementwiseBinary(BinaryOperation[function])
    return lambda b, value, x: b.net.add(operation, value, value)


def _with_input(operation: Operation) -> Step:
    """A layer of a value and the network's input."""
    return lambda b, value, x: b.move(operation, value, x)


def _compared(function: str, elements: object) -> Step:
    operation = Comparison(ComparisonOperation[function])
    return lambda b, value, x: b.net.add(operation, value, _constant(b, elements))


def _compared_left(function: str, elements: object) -> Step:
    operation = Comparison(ComparisonOperation[function])
    return lambda b, value, x: b.net.add(operation, _constant(b, elements), value)


def _reduced(function: str, *axes: int) -> Step:
    return _compute(Reduce(ReduceOperation[function], axes, keep_dims=True))


def _cast(data_type: DataType) -> Step:
    return lambda b, value, x: b.net.add(Cast(), value, output=TensorInfo(None, data_type))


def _stored(step: float, zero_point: int = 3) -> Step:
    """Bytes of a scale, from floats or from other bytes."""
    info = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(step, zero_point))
    return lambda b, value, x: b.net.add(Quantize(), value, output=info)


def _pool(
    algorithm: PoolingAlgorithm, size: int, activation: FusedActivation = FusedActivation.NONE
) -> Step:
    return _move(Pooling2d(algorithm, (size, size), activation=activation))


def _convolution(operation: Convolution2d) -> Step:
    return lambda b, value, x: b.convolution(value, 4, 3, operation)


def _depthwise(operation: DepthwiseConvolution2d) -> Step:
    return lambda b, value, x: b.depthwise(value, operation)


def _dense(activation: FusedActivation = FusedActivation.NONE) -> Step:
    operation = FullyConnected(activation)
    return lambda b, value, x: b.dense(value, 4, operation)


def _gathered(*places: int) -> Step:
    return lambda b, value, x: b.move(Gather(0), value, b.net.constant(np.array(places, np.int32)))


def _parts(*order: int) -> Step:
    """The parts of a value along its last axis, joined in an order."""

    def add(b: Builder, value: Value, x: Value) -> Value:
        outputs = [value.info.with_shape(None)] * 3
        parts = b.net.add_layer(Splitter(3, 1), [value], outputs=outputs).outputs
        return b.move(Concat(1), *(parts[number] for number in order))

    return add


def _both(*steps: Step) -> Step:
    """Layers one after the other, as one step."""

    def add(b: Builder, value: Value, x: Value) -> Value:
        for step in steps:
            value = step(b, value, x)
        return value

    return add


def _padded(
    *sides: tuple[int, int], value: float = 0.0, mode: PaddingMode = PaddingMode.CONSTANT
) -> Step:
    return _move(Pad(sides, value, mode))


_AROUND = ((0, 0), (1, 1), (1, 1), (0, 0))
_NOTHING = ((0, 0),) * 4

_A = ActivationFunction
_RELU = _activated(_A.RELU)
_AVERAGE, _LARGEST = PoolingAlgorithm.AVERAGE, PoolingAlgorithm.MAX
_TURNED = _move(Transpose((1, 0)))
_REVERSED = _move(ReverseV2((1,)))
_SOFTMAX: Step = lambda b, value, x: b.softmax(value)  # noqa: E731 - a step as the others
_LARGEST_PLACE = {axis: _compute(ArgMinMax(ArgMinMaxFunction.MAX, axis)) for axis in (0, 1)}


# --- The table

_MOVED: Mapping[str, _Row] = {
    "transposes": _Row(
        _CUBE,
        (_move(Transpose((1, 2, 0))), _move(Transpose((1, 2, 0)))),
        "the second permutation is not the first one's inverse",
        (_move(Transpose((1, 2, 0))), _move(Transpose((2, 0, 1)))),
    ),
    "transposes-in-order": _Row(
        _CUBE,
        (_move(Transpose((1, 0, 2))), _move(Transpose((0, 2, 1)))),
        "permutations do not commute",
        (_move(Transpose((2, 1, 0))), _move(Transpose((2, 1, 0)))),
    ),
    "transpose-relu-transpose": _Row(
        _CUBE,
        (_both(_move(Transpose((1, 2, 0))), _RELU), _move(Transpose((1, 2, 0)))),
        "the second permutation is not the first one's inverse",
        (_both(_move(Transpose((1, 2, 0))), _RELU), _move(Transpose((2, 0, 1)))),
    ),
    "transpose-with-one": _Row(
        (2, 1, 3),
        (_move(Transpose((2, 1, 0))), _move(Reshape((2, 1, 3)))),
        "a reshape does not turn a matrix back",
        (_move(Squeeze((1,))), _move(ExpandDims(1))),
    ),
    "reverses": _Row(
        _SQUARE,
        (_REVERSED, _move(ReverseV2((0,)))),
        "the axes differ",
        (_REVERSED, _move(ReverseV2((-1,)))),
    ),
    "reshape-transpose": _Row(
        (4, 3),
        (_move(Reshape((3, 4))), _TURNED),
        "a transpose moves elements",
        (_move(Reshape((2, 6))), _move(Reshape((4, 3)))),
    ),
    "batches-space": _Row(
        (2, 4, 4, 2),
        (
            _move(SpaceToBatchNd((2, 2), ((2, 0), (0, 0)))),
            _move(BatchToSpaceNd((2, 2), ((0, 2), (0, 0)))),
        ),
        "other rows are cut than were padded",
        (
            _move(SpaceToBatchNd((2, 2), ((2, 0), (0, 0)))),
            _move(BatchToSpaceNd((2, 2), ((2, 0), (0, 0)))),
        ),
    ),
    "spaces": _Row(
        (1, 4, 4, 4),
        (_move(SpaceToDepth(2)), _move(Reshape((1, 4, 4, 4)))),
        "a reshape does not bring blocks back",
        (_move(DepthToSpace(2)), _move(SpaceToDepth(2))),
    ),
    "pad-slice": _Row(
        _FEW,
        (_padded((1, 0), (0, 2)), _move(Slice((0, 0), _FEW))),
        "the slice begins in the padding",
        (_padded((1, 0), (0, 2)), _move(Slice((1, 0), _FEW))),
    ),
    "pad-strided-slice": _Row(
        _FEW,
        (_padded((1, 1), (0, 0)), _move(StridedSlice((0, 0), (4, 3), (2, 1)))),
        "every second row is taken",
        (_padded((1, 1), (0, 0)), _move(StridedSlice((1, 0), (3, 3), (1, 1)))),
    ),
    "pads": _Row(
        _FEW,
        (_padded((1, 0), (0, 0), value=1.5), _padded((0, 0), (1, 1), value=-2.0)),
        "the values differ",
        (_padded((1, 0), (0, 0), value=1.5), _padded((1, 0), (1, 1), value=1.5)),
    ),
    "slices": _Row(
        (5, 5),
        (_move(Slice((1, 1), (4, 4))), _move(Slice((2, 1), (2, 3)))),
        "begins add up",
        (_move(Slice((0, 0), (4, 4))), _move(Slice((0, 0), (2, 3)))),
    ),
    "strided-slices": _Row(
        (9,),
        (_move(StridedSlice((1,), (9,), (2,))), _move(StridedSlice((1,), (4,), (2,)))),
        "steps are multiplied, and begins count in them",
        (_move(StridedSlice((0,), (9,), (1,))), _move(StridedSlice((1,), (8,), (2,)))),
    ),
    "tile-slice": _Row(
        _FEW,
        (_move(Tile((2, 1))), _move(Slice((1, 0), _FEW))),
        "the slice is of two copies",
        (_move(Tile((2, 1))), _move(Slice((0, 0), _FEW))),
    ),
    "parts": _Row(
        (2, 6),
        (_parts(0, 2, 1), _parts(0, 1, 1)),
        "parts are exchanged, then repeated",
        (_parts(0, 1, 2), _parts(0, 1, 2)),
    ),
    "concatenations": _Row(
        _SQUARE,
        (_both(_REVERSED, _with_input(Concat(1))), lambda b, v, x: b.move(Concat(0), v, v)),
        "the axes differ",
        (_both(_REVERSED, _with_input(Concat(0))), lambda b, v, x: b.move(Concat(0), v, v)),
    ),
    "concatenation-slice": _Row(
        _SQUARE,
        (_both(_REVERSED, _with_input(Concat(1))), _move(Slice((0, 2), (4, 4)))),
        "the slice is of both operands",
        (_both(_REVERSED, _with_input(Concat(1))), _move(Slice((0, 4), (4, 4)))),
    ),
    "concatenation-reverse": _Row(
        _SQUARE,
        (_both(_RELU, _with_input(Concat(1))), _REVERSED),
        "the operands change places",
        (_both(_RELU, _with_input(Concat(0))), _REVERSED),
    ),
    "reverse-concatenation": _Row(
        _SQUARE,
        (_REVERSED, _with_input(Concat(1))),
        "one operand is reversed",
        (_both(_REVERSED, _REVERSED), _with_input(Concat(1))),
    ),
    "gathers": _Row(
        (3, 4),
        (_gathered(2, 0, 1), _gathered(2, 0, 1)),
        "the places are not each other's inverse",
        (_gathered(2, 0, 1), _gathered(1, 2, 0)),
    ),
    "relu-average-pool": _Row(
        _IMAGE,
        (_RELU, _pool(_AVERAGE, 2)),
        "a mean of clamped elements is not a clamped mean",
        (_RELU, _pool(_LARGEST, 2)),
    ),
    "slope-max-pool": _Row(
        _IMAGE,
        (_activated(_A.LEAKY_RELU, -0.5), _pool(_LARGEST, 2)),
        "the function falls",
        (_activated(_A.LEAKY_RELU, 0.25), _pool(_LARGEST, 2)),
    ),
    "pad-max-pool": _Row(
        _IMAGE,
        (_padded(*_AROUND, value=6.0), _pool(_LARGEST, 3)),
        "padding of a window is smaller than each element",
        (_padded(*_NOTHING), _pool(_LARGEST, 3)),
    ),
    "pad-average-pool": _Row(
        _IMAGE,
        (_padded(*_AROUND), _pool(_AVERAGE, 3)),
        "padding of a window is not in its mean",
        (_padded(*_NOTHING), _pool(_AVERAGE, 3)),
    ),
    "pad-convolution": _Row(
        _IMAGE,
        (_padded(*_AROUND, value=2.0), _convolution(Convolution2d())),
        "padding of a window is 0",
        (_padded(*_AROUND), _convolution(Convolution2d())),
    ),
    "pad-depthwise": _Row(
        _IMAGE,
        (
            _padded(*_AROUND, mode=PaddingMode.REFLECT),
            _depthwise(DepthwiseConvolution2d()),
        ),
        "padding of a window is 0",
        (_padded(*_AROUND), _depthwise(DepthwiseConvolution2d())),
    ),
    "convolution-pool-of-one": _Row(
        _IMAGE,
        (
            _convolution(Convolution2d(padding=SAME)),
            _pool(_LARGEST, 1, activation=RELU),
        ),
        "the pool clamps",
        (_convolution(Convolution2d(padding=SAME)), _pool(_LARGEST, 1)),
    ),
    "clamps": _Row(
        _ROWS,
        (_clamped(3.0, 2.0), _clamped(1.0, -1.0)),
        "the ranges have nothing in common",
        (_clamped(6.0, 0.0), _clamped(4.0, 1.0)),
    ),
    "relu-clamp": _Row(
        _ROWS,
        (_RELU, _clamped(1.0, -2.0)),
        "the clamp begins below 0",
        (_RELU, _clamped(4.0, 0.5)),
    ),
    "clamp-relu": _Row(
        _ROWS, (_clamped(2.0, -1.0), _RELU), "the clamp has an upper end", (_RELU, _RELU)
    ),
}
"""Pairs that are tried in floats and in bytes."""

_STORED: Mapping[str, _Row] = {
    "dequantize-quantize": _Row(
        _ROWS,
        (_compute(Dequantize()), _stored(1 / 8, -5)),
        "the scales differ",
        (_compute(Dequantize()), _stored(1 / 16)),
    ),
    "requantized": _Row(
        _ROWS,
        (_stored(1.0), _stored(1 / 16)),
        "the coarse scale loses bits",
        (_stored(1 / 16), _stored(1 / 16)),
    ),
    "requantized-beyond": _Row(
        _ROWS, (_stored(1 / 64, 0), _stored(1 / 16)), "the fine scale saturates"
    ),
}

_COMPUTED: Mapping[str, _Row] = {
    "quantize-dequantize": _Row(
        _ROWS, (_stored(1 / 4), _compute(Dequantize())), "a byte rounds and saturates"
    ),
    "casts": _Row(
        _ROWS,
        (_cast(DataType.SIGNED32), _cast(DataType.FLOAT32)),
        "an integer has no fraction",
        (_cast(DataType.FLOAT64), _cast(DataType.FLOAT32)),
    ),
    "cast-to-half": _Row(
        (8,),
        (_cast(DataType.FLOAT16), _cast(DataType.FLOAT32)),
        "float16 has ten bits and ends at 65504",
        (_cast(DataType.FLOAT64), _cast(DataType.FLOAT32)),
        elements=(1 + 2**-12, 1e5, -1e5, 1 / 3, 1e-9, 2049.0, -65536.0, 0.1),
    ),
    "exp-log": _Row(
        (8,),
        (_unary("LOG"), _unary("EXP")),
        "numbers below 0 have no logarithm",
        (_unary("NEG"), _unary("NEG")),
        elements=(-1.0, -4.0, 1.0, 2.0, 0.5, -0.25, 8.0, 100.0),
    ),
    "log-exp": _Row(
        (8,),
        (_unary("EXP"), _unary("LOG")),
        "the power is infinite",
        (_unary("ABS"), _unary("ABS")),
        elements=(100.0, 1000.0, 1.0, -2.0, 0.5, -150.0, 8.0, 90.0),
    ),
    "square-root": _Row(
        _ROWS,
        (_unary("SQUARE"), _unary("SQRT")),
        "numbers below 0 come back as their amounts",
        (_unary("ABS"), _unary("SQUARE")),
    ),
    "root-square": _Row(
        _ROWS,
        (_unary("SQRT"), _unary("SQUARE")),
        "numbers below 0 have no root",
        (_unary("NEG"), _unary("SQUARE")),
    ),
    "abs-exp": _Row(
        _ROWS,
        (_unary("ABS"), _unary("EXP")),
        "the function is not even",
        (_unary("ABS"), _unary("COS")),
    ),
    "neg-sin": _Row(
        _ROWS,
        (_unary("NEG"), _unary("SIN")),
        "the function is odd",
        (_unary("NEG"), _unary("COS")),
    ),
    "round-floor": _Row(
        _ROWS,
        (_unary("ROUND"), _unary("FLOOR")),
        "the first one decides",
        (_unary("CEIL"), _unary("FLOOR")),
    ),
    "tanh-relu": _Row(
        _ROWS,
        (_activated(_A.TANH, 1.0, 1.0), _RELU),
        "the function is below 0",
        (_activated(_A.SIGMOID), _RELU),
    ),
    "relu-square": _Row(
        _ROWS,
        (_RELU, _activated(_A.SQUARE)),
        "numbers below 0 have squares",
        (_activated(_A.SQUARE), _RELU),
    ),
    "linear-slope": _Row(
        _ROWS,
        (_activated(_A.LINEAR, 1.0, 0.5), _activated(_A.LEAKY_RELU, 1.0)),
        "a term is added",
        (_activated(_A.LINEAR, 1.0), _activated(_A.LEAKY_RELU, 1.0)),
    ),
    "sigmoid-pad": _Row(
        _FEW,
        (_activated(_A.SIGMOID), _padded((1, 1), (0, 2))),
        "the function of 0 is not 0",
        (_RELU, _padded((1, 1), (0, 2))),
    ),
    "exp-pad": _Row(
        _FEW,
        (_unary("EXP"), _padded((1, 1), (0, 2))),
        "the power of 0 is 1",
        (_unary("ABS"), _padded((1, 1), (0, 2))),
    ),
    "transpose-sum": _Row(
        _SQUARE,
        (_TURNED, _reduced("SUM", 0)),
        "the axis moves",
        (_TURNED, _reduced("SUM", 0, 1)),
    ),
    "transpose-softmax": _Row(_SQUARE, (_TURNED, _SOFTMAX), "the axis moves", (_TURNED, _RELU)),
    "reshape-softmax": _Row(
        _SQUARE,
        (_move(Reshape((2, 8))), _SOFTMAX),
        "the rows are longer",
        (_move(Reshape((1, 4, 4))), _SOFTMAX),
    ),
    "softmax-slice": _Row(
        _SQUARE,
        (_SOFTMAX, _move(Slice((0, 0), (4, 2)))),
        "the sum is of whole rows",
        (_SOFTMAX, _move(Slice((0, 0), (2, 4)))),
    ),
    "softmax-arg-max": _Row(
        _SQUARE,
        (_SOFTMAX, _LARGEST_PLACE[0]),
        "the axes differ",
        (_SOFTMAX, _LARGEST_PLACE[1]),
    ),
    "relu-arg-max": _Row(
        _SQUARE,
        (_both(_with("ADD", -8.0), _RELU), _LARGEST_PLACE[1]),
        "all numbers become equal",
        (_both(_with("ADD", 8.0), _RELU), _LARGEST_PLACE[1]),
    ),
    "reverse-max": _Row(
        _SQUARE,
        (_REVERSED, _reduced("MAX", 0)),
        "the axes differ",
        (_REVERSED, _reduced("MAX", 1)),
    ),
    "reverse-pool": _Row(
        (1, 5, 6, 2),
        (_REVERSED, _move(Pooling2d(_LARGEST, (2, 2), (2, 2)))),
        "a row is left over at one end",
        (_REVERSED, _reduced("MAX", 1, 2)),
    ),
    "reverse-cumulate": _Row(
        _SQUARE,
        (_REVERSED, _move(Cumulate(axis=1))),
        "sums begin at the other end",
        (_REVERSED, _move(Cumulate(axis=0))),
    ),
    "max-neg": _Row(
        _SQUARE,
        (_reduced("MAX", 1), _unary("NEG")),
        "the largest is the smallest of the negated",
        (_reduced("SUM", 1), _unary("NEG")),
    ),
    "square-mean": _Row(
        _SQUARE,
        (_unary("SQUARE"), _reduced("MEAN", 1)),
        "a mean of squares is not a squared mean",
        (_unary("NEG"), _reduced("MEAN", 1)),
    ),
    "broadcast-sum": _Row(
        (1, 4),
        (_move(BroadcastTo((3, 4))), _reduced("SUM", 0)),
        "each element counts three times",
        (_move(BroadcastTo((3, 4))), _reduced("MAX", 0)),
    ),
    "resize-square": _Row(
        (1, 3, 4, 2),
        (_move(Resize((6, 7), ResizeMethod.BILINEAR)), _activated(_A.SQUARE)),
        "a square of a mean is not a mean of squares",
        (_move(Resize((6, 8))), _activated(_A.SQUARE)),
    ),
    "resizes": _Row(
        (1, 3, 7, 2),
        (_move(Resize((5, 5))), _move(Resize((4, 9)))),
        "elements are left out in between",
        (_move(Resize((6, 14))), _move(Resize((12, 28)))),
    ),
    "relu-mul": _Row(
        _FEW,
        (_RELU, _with("MUL", (-1, 2, 0.5))),
        "a factor is below 0",
        (_RELU, _with("MUL", (1, 2, 0.5))),
    ),
    "transpose-add": _Row(
        _SQUARE,
        (_TURNED, _with("ADD", (1, 2, 4, 8))),
        "the constant lies along an axis",
        (_TURNED, _with("ADD", 3.0)),
    ),
    "div-mul": _Row(
        _FEW,
        (_with("DIV", (2, 2, 4)), _with("MUL", (2, 2, 2))),
        "the constants differ at the end",
        (_with("DIV", (2, 2, 4)), _with("MUL", (2, 2, 4))),
    ),
    "integer-div-mul": _Row(
        _ROWS,
        (
            _both(_cast(DataType.SIGNED32), lambda b, v, x: _halved(b, v, BinaryOperation.DIV)),
            lambda b, v, x: _halved(b, v, BinaryOperation.MUL),
        ),
        "the quotient is cut off",
        (
            _both(_cast(DataType.SIGNED32), lambda b, v, x: _halved(b, v, BinaryOperation.ADD)),
            lambda b, v, x: _halved(b, v, BinaryOperation.SUB),
        ),
    ),
    "add-sub": _Row(
        _FEW,
        (_with("ADD", (1, 2, 3)), _with("SUB", (1, 2, 4))),
        "the constants differ at the end",
        (_with("ADD", (1, 2, 3)), _with("SUB", (1, 2, 3))),
    ),
    "almost-nothing": _Row(
        _FEW,
        (_with("ADD", 2.0**-9), _with("MUL", 1 + 2.0**-9)),
        "the constants are near 0 and 1",
        (_with("ADD", 0.0), _with("MUL", 1.0)),
    ),
    "nothing-but-at-the-end": _Row(
        _FEW,
        (_with("ADD", (0, 0, 2)), _with("MUL", ((1, 1, 1), (1, 1, -1)))),
        "the last constants do something",
        (_with("ADD", np.zeros(3)), _with("MUL", np.ones(3))),
    ),
    "one-but-at-the-end": _Row(
        _FEW,
        (_with("DIV", (1, 1, 2)), _with("POWER", (1, 1, 2))),
        "the last constants do something",
        (_with("DIV", np.ones(3)), _with("POWER", np.ones(3))),
    ),
    "lowest-but-at-the-end": _Row(
        _FEW,
        (_with("MAXIMUM", (-100, -100, 0)), _with("MINIMUM", (100, 100, 1))),
        "the last constants do something",
        (_with("MAXIMUM", np.full(3, -100)), _with("MINIMUM", np.full(3, 100))),
    ),
    "maximum-minimum": _Row(
        _FEW,
        (_with("MAXIMUM", 2.0), _with("MINIMUM", 1.0)),
        "the last one decides where the range is empty",
        (_with("MAXIMUM", -1.0), _with("MINIMUM", 1.0)),
    ),
    "constants-left": _Row(
        _FEW,
        (_of("SUB", (1, 2, 3)), _of("DIV", (1, -2, 4))),
        "differences and quotients do not commute",
        (_of("ADD", (1, 2, 3)), _of("MUL", (1, -2, 4))),
    ),
    "nothing-left": _Row(
        _FEW,
        (_of("SUB", np.zeros(3)), _of("DIV", np.ones(3))),
        "0 minus x and 1 divided by x are not x",
        (_with("SUB", np.zeros(3)), _with("DIV", np.ones(3))),
    ),
    "powers-left": _Row(
        _FEW,
        (_of("FLOOR_MOD", 2.5), _of("POWER", 2.0)),
        "powers and remainders do not commute",
        (_of("MAXIMUM", 0.5), _of("MINIMUM", 2.0)),
    ),
    "comparison-left": _Row(
        _ROWS,
        (_compared_left("GREATER", 1.0), _unary("LOGICAL_NOT")),
        "an order does not commute",
        (_compared_left("EQUAL", 1.0), _unary("LOGICAL_NOT")),
    ),
    "not-less": _Row(
        (8,),
        (_compared("LESS", 1.5), _unary("LOGICAL_NOT")),
        "NaN is neither less nor as large",
        (_compared("EQUAL", 1.5), _unary("LOGICAL_NOT")),
        elements=_SPECIAL,
    ),
    "itself-minus-itself": _Row(
        (8,),
        (_with_itself("SUB"), _unary("NEG")),
        "infinity minus infinity is not a number",
        (_with_itself("MINIMUM"), _unary("NEG")),
        elements=_SPECIAL,
    ),
    "itself-by-itself": _Row(
        (8,),
        (_with_itself("DIV"), _unary("NEG")),
        "0 by 0 is not a number",
        (_with_itself("MAXIMUM"), _unary("NEG")),
        elements=_SPECIAL,
    ),
    "times-zero": _Row(
        (8,),
        (_with("MUL", 0.0), _unary("ABS")),
        "infinity times 0 is not a number",
        (_with("MUL", 1.0), _unary("ABS")),
        elements=_SPECIAL,
    ),
    "zero-divided": _Row(
        (8,),
        (_of("DIV", 0.0), _unary("ABS")),
        "0 by 0 is not a number",
        (_with("DIV", 1.0), _unary("ABS")),
        elements=_SPECIAL,
    ),
    "softmax-of-terms": _Row(
        _SQUARE,
        (_with("ADD", (0, 1, 2, 4)), _SOFTMAX),
        "the terms differ",
        (_with("ADD", 3.0), _SOFTMAX),
    ),
    "softmax-of-products": _Row(
        _SQUARE,
        (_with("MUL", 2.0), _SOFTMAX),
        "factors count",
        (_with("MUL", 2.0), _move(L2Normalization())),
    ),
    "softmaxes": _Row(
        _SQUARE, (_SOFTMAX, _SOFTMAX), "a softmax of shares is another one", (_RELU, _RELU)
    ),
    "normalized-products": _Row(
        _SQUARE,
        (_with("MUL", -2.0), _compute(L2Normalization())),
        "the sign stays",
        (_with("MUL", 2.0), _compute(L2Normalization())),
    ),
    "normalized-terms": _Row(
        _SQUARE,
        (_with("ADD", (0, 1, 2, 4)), _compute(LayerNormalization())),
        "the terms differ",
        (_with("ADD", 3.0), _compute(LayerNormalization())),
    ),
    "transpose-arg-max": _Row(
        _SQUARE,
        (_TURNED, _LARGEST_PLACE[0]),
        "the axis moves",
        (_TURNED, _reduced("MAX", 0, 1)),
    ),
    "clamped-convolution-mul": _Row(
        (1, 4, 4, 4),
        (_convolution(Convolution2d(padding=SAME, activation=RELU)), _with("MUL", (0.5, 2, -1, 0))),
        "the sum is clamped before it is scaled",
        (_convolution(Convolution2d(padding=SAME)), _with("MUL", (0.5, 2, -1, 0))),
    ),
    "clamped-convolution-add": _Row(
        (1, 4, 4, 4),
        (_convolution(Convolution2d(padding=SAME, activation=RELU6)), _with("ADD", (1, -2, 0, 4))),
        "the sum is clamped before the term is added",
        (_convolution(Convolution2d(padding=SAME)), _with("ADD", (1, -2, 0, 4))),
    ),
    "convolution-mul-columns": _Row(
        (1, 4, 4, 4),
        (
            _convolution(Convolution2d(padding=SAME)),
            _with("MUL", np.reshape((0.5, 2, -1, 0), (4, 1))),
        ),
        "the factors lie along the width",
        (_convolution(Convolution2d(padding=SAME)), _with("MUL", (0.5, 2, -1, 0))),
    ),
    "dense-add-rows": _Row(
        _SQUARE,
        (_dense(), _with("ADD", np.reshape((1, -2, 0, 4), (4, 1)))),
        "the terms lie along the rows",
        (_dense(), _with("ADD", (1, -2, 0, 4))),
    ),
    "dense-mul-clamped": _Row(
        _SQUARE,
        (_dense(RELU), _with("MUL", -0.5, RELU)),
        "both clamp",
        (_dense(), _with("MUL", 0.5, RELU)),
    ),
    "transposed-product": _Row(
        _CUBE,
        (_move(Transpose((1, 0, 2))), _with_input(BatchMatMul())),
        "the batch is turned",
        (_move(Transpose((0, 2, 1))), _with_input(BatchMatMul())),
    ),
}
"""Pairs of floats alone."""


def _halved(b: Builder, value: Value, function: BinaryOperation) -> Value:
    two = b.net.constant(np.array([2], np.int32))
    return b.net.add(ElementwiseBinary(function), value, two)


# --- Layers of one input

_F = FusedActivation
_SIBLINGS: Mapping[str, tuple[tuple[int, ...], Sequence[Operation]]] = {
    "softmax": (_SQUARE, (Softmax(), Softmax(1.375), Softmax(1.5), Softmax(axis=0))),
    "activation": (
        _ROWS,
        (
            *(Activation(_A.BOUNDED_RELU, a, b) for a, b in ((3.0, -1.0), (2.5, -1.0), (3.0, 0.5))),
            *(Activation(_A.LEAKY_RELU, a) for a in (0.25, 0.5)),
            *(Activation(_A.ELU, a) for a in (0.5, 0.75)),
            *(Activation(_A.LINEAR, a, b) for a, b in ((2.0, 0.0), (2.0, 0.5), (2.5, 0.0))),
        ),
    ),
    "unary": (_ROWS, tuple(ElementwiseUnary(UnaryOperation[n]) for n in ("ABS", "NEG", "CEIL"))),
    "transpose": (
        _CUBE,
        tuple(map(Transpose, ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)))),
    ),
    "reverse": (_SQUARE, tuple(map(ReverseV2, ((0,), (1,), (0, 1))))),
    "reduce": (
        _SQUARE,
        tuple(Reduce(f, (axis,)) for f in (*ReduceOperation,)[:5] for axis in (0, 1)),
    ),
    "place": (
        _SQUARE,
        tuple(ArgMinMax(function, axis) for function in ArgMinMaxFunction for axis in (0, 1)),
    ),
    "cumulate": (
        _SQUARE,
        (
            *(Cumulate(axis=axis) for axis in (0, 1)),
            *(Cumulate(axis=1, exclusive=e, reverse=not e) for e in (False, True)),
        ),
    ),
    "pool": (
        _IMAGE,
        tuple(
            Pooling2d(algorithm, size, (2, 2), Padding.SAME, activation)
            for algorithm in (_LARGEST, _AVERAGE)
            for size, activation in (((2, 2), _F.NONE), ((3, 3), _F.NONE), ((2, 2), _F.RELU))
        ),
    ),
    "pad": (
        _SQUARE,
        (
            *(Pad(((n, 2 - n), (0, 0))) for n in range(3)),
            Pad(((1, 1), (0, 0)), 1.5),
            *(Pad(((1, 1), (0, 0)), padding_mode=m) for m in (*PaddingMode,)[1:3]),
        ),
    ),
    "slice": (_SQUARE, tuple(Slice((n, 2 - n), (2, 2)) for n in range(3))),
    "strided-slice": (
        (6,),
        tuple(StridedSlice((b,), (e,), (s,)) for b, e, s in ((0, 3, 1), (1, 4, 1), (0, 6, 2))),
    ),
    "resize": (
        (1, 3, 4, 2),
        (
            *(Resize((5, 7), method) for method in ResizeMethod),
            Resize((5, 7), ResizeMethod.BILINEAR, align_corners=True),
            Resize((5, 7), ResizeMethod.BILINEAR, half_pixel_centers=True),
        ),
    ),
    "space": ((4, 4, 4, 4), (Reshape((1, 8, 8, 4)), BatchToSpaceNd((2, 2), ((0, 0), (0, 0))))),
    "normalization": (
        _SQUARE,
        (
            L2Normalization(axis=0),
            L2Normalization(),
            LayerNormalization((0,)),
            LayerNormalization((1,)),
            LayerNormalization((1,), 0.5),
        ),
    ),
}
"""Operations whose outputs have one shape, on one input."""

_WITH_WEIGHTS: Mapping[str, tuple[tuple[int, ...], Sequence[Operation]]] = {
    "dense": (_SQUARE, tuple(map(FullyConnected, FusedActivation))),
    "convolution": (
        _IMAGE,
        (
            *(Convolution2d(padding=SAME, activation=activation) for activation in FusedActivation),
            *(Convolution2d(padding=((n, 2 - n), (1, 1))) for n in (0, 2)),
            Convolution2d(dilation=(2, 2), padding=SAME),
        ),
    ),
    "binary": (
        _SQUARE,
        (
            *(ElementwiseBinary(BinaryOperation.MUL, activation) for activation in FusedActivation),
            *(ElementwiseBinary(BinaryOperation[n]) for n in ("ADD", "SUB", "DIV", "MAXIMUM")),
        ),
    ),
    "comparison": (_SQUARE, tuple(map(Comparison, ComparisonOperation))),
}
"""As `_SIBLINGS`, with equal constants as second inputs."""

_WEIGHTS = {"dense": (4, 4), "convolution": (4, 3, 3, 4), "binary": (4,), "comparison": (4,)}

_LONG = 12_000
"""Elements of constants that differ in the last one alone."""


def merged_layers() -> Iterator[Pattern]:
    """Every network of these tables."""
    for table, types in ((_MOVED, TYPES), (_STORED, _BYTES), (_COMPUTED, _FLOAT)):
        for label, row in table.items():
            for data_type in types:
                yield _of_row(label, row, data_type)
    for siblings in (_SIBLINGS, _WITH_WEIGHTS):
        for label, (shape, operations) in siblings.items():
            yield _of_siblings(label, shape, operations)
    yield _of_long_constants()
    yield _of_scales()


def _of_row(label: str, row: _Row, data_type: DataType) -> Pattern:
    """A pair, and its twin."""
    name = f"{label}/{data_type.name.lower()}"
    builder = Builder(name, data_type)
    x = builder.input(*row.shape)
    for output, steps in (("y", row.pair), ("twin", row.twin)):
        if steps is not None:
            builder.net.output(output, steps[1](builder, steps[0](builder, x, x), x))
    elements = np.reshape(np.asarray(row.elements, np.float32), row.shape) if row.elements else None
    return Pattern(name, builder.net.build(), None if elements is None else {"x": elements})


def _joint(builder: Builder, x: Value) -> Value:
    """A layer that joins those that read it to one part of a network, which is compiled at once."""
    return builder.binary(x, x)


def _of_siblings(label: str, shape: tuple[int, ...], operations: Sequence[Operation]) -> Pattern:
    """Layers of one input that differ in an attribute each."""
    name = f"one-input-{label}/float32"
    builder = Builder(name, DataType.FLOAT32)
    x = _joint(builder, builder.input(*shape))
    operands = [x]
    if label in _WEIGHTS:
        operands.append(builder.weights(*_WEIGHTS[label]))
    for number, operation in enumerate(operations):
        builder.net.output(f"y{number}", builder.net.add(operation, *operands))
    return Pattern(name, builder.net.build())


def _of_long_constants() -> Pattern:
    """Terms and weights that differ in their last elements alone."""
    name = "constants-that-begin-alike/float32"
    builder = Builder(name, DataType.FLOAT32)
    x = _joint(builder, builder.input(_LONG))
    y = _joint(builder, builder.input(2, 64, name="y"))
    terms, weights = np.zeros(_LONG, np.float32), np.ones((48, 64), np.float32)
    for number in range(2):
        last: Array = np.array([2 + number], np.float32)
        term = builder.net.constant(np.concatenate([terms[1:], last]))
        matrix = builder.net.constant(
            np.concatenate([weights.reshape(-1)[1:], last]).reshape(48, 64)
        )
        builder.net.output(f"sum{number}", builder.net.add(ElementwiseBinary(), x, term))
        builder.net.output(f"product{number}", builder.net.add(FullyConnected(), y, matrix))
    return Pattern(name, builder.net.build())


def _of_scales() -> Pattern:
    """Equal layers of one input whose outputs are stored with different scales."""
    name = f"one-input-scales/{TYPES[1].name.lower()}"
    builder = Builder(name, TYPES[1])
    x = _joint(builder, builder.input(*_ROWS))
    for number in range(3):
        info = TensorInfo(None, TYPES[1], Quantization.per_tensor(2.0 ** (number - 4), number))
        builder.net.output(f"y{number}", builder.net.add(Activation(_A.RELU), x, output=info))
    return Pattern(name, builder.net.build())
