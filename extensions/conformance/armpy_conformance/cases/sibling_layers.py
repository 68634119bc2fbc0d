"""Equal layers of one input that differ in an attribute, a scale, or the end of a constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchToSpaceNd,
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    Convolution2d,
    Cumulate,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    FusedActivation,
    L2Normalization,
    LayerNormalization,
    Operation,
    Pad,
    Padding,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ResizeMethod,
    ReverseV2,
    Slice,
    Softmax,
    StridedSlice,
    Transpose,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.patterns import SAME, TYPES, Builder
from armpy_conformance.pattern import Pattern

_IMAGE, _CUBE, _SQUARE, _ROWS = (2, 5, 6, 4), (3, 3, 3), (4, 4), (3, 7)
_A, _F = ActivationFunction, FusedActivation

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
            for algorithm in (PoolingAlgorithm.MAX, PoolingAlgorithm.AVERAGE)
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


def sibling_layers() -> Iterator[Pattern]:
    """Every network of these tables."""
    for siblings in (_SIBLINGS, _WITH_WEIGHTS):
        for label, (shape, operations) in siblings.items():
            yield _of_siblings(label, shape, operations)
    yield _of_long_constants()
    yield _of_scales()


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
