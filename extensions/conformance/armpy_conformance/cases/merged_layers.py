"""Two layers that look like ones that a compiler merges, moves or takes out, and may not be.

Each row of the table is a network of two pairs of layers of one input: the pair that has to stay
as it is, and beside it a twin that may be merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops import (
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BatchToSpaceNd,
    BinaryOperation,
    BroadcastTo,
    Concat,
    Convolution2d,
    DepthToSpace,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ExpandDims,
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
    SpaceToBatchNd,
    SpaceToDepth,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
)
from armpy.types import DataType
from armpy_conformance.cases.layer_steps import (
    Step,
    activated,
    both,
    cast,
    clamped,
    compared,
    compute,
    constant_left,
    constant_right,
    convolution,
    dense,
    depthwise,
    gathered,
    move,
    padded,
    parts,
    pool,
    reduced,
    stored,
    unary,
    with_input,
    with_itself,
    with_two,
)
from armpy_conformance.cases.patterns import RELU, RELU6, SAME, TYPES, Builder
from armpy_conformance.pattern import Pattern

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
    elements: tuple[float, ...] = field(default=())  # of the input, of chance if left out


_AROUND = ((0, 0), (1, 1), (1, 1), (0, 0))
_NOTHING = ((0, 0),) * 4

_A = ActivationFunction
_RELU = activated(_A.RELU)
_SUM = ReduceOperation.SUM
_AVERAGE, _LARGEST = PoolingAlgorithm.AVERAGE, PoolingAlgorithm.MAX
_TURNED = move(Transpose((1, 0)))
_REVERSED = move(ReverseV2((1,)))
_SOFTMAX: Step = lambda b, value, x: b.softmax(value)  # noqa: E731 - a step as the others
_LARGEST_PLACE = {axis: compute(ArgMinMax(ArgMinMaxFunction.MAX, axis)) for axis in (0, 1)}


_MOVED: Mapping[str, _Row] = {
    "transposes": _Row(
        _CUBE,
        (move(Transpose((1, 2, 0))), move(Transpose((1, 2, 0)))),
        "the second permutation is not the first one's inverse",
        (move(Transpose((1, 2, 0))), move(Transpose((2, 0, 1)))),
    ),
    "transposes-in-order": _Row(
        _CUBE,
        (move(Transpose((1, 0, 2))), move(Transpose((0, 2, 1)))),
        "permutations do not commute",
        (move(Transpose((2, 1, 0))), move(Transpose((2, 1, 0)))),
    ),
    "transpose-relu-transpose": _Row(
        _CUBE,
        (both(move(Transpose((1, 2, 0))), _RELU), move(Transpose((1, 2, 0)))),
        "the second permutation is not the first one's inverse",
        (both(move(Transpose((1, 2, 0))), _RELU), move(Transpose((2, 0, 1)))),
    ),
    "transpose-with-one": _Row(
        (2, 1, 3),
        (move(Transpose((2, 1, 0))), move(Reshape((2, 1, 3)))),
        "a reshape does not turn a matrix back",
        (move(Squeeze((1,))), move(ExpandDims(1))),
    ),
    "reverses": _Row(
        _SQUARE,
        (_REVERSED, move(ReverseV2((0,)))),
        "the axes differ",
        (_REVERSED, move(ReverseV2((-1,)))),
    ),
    "reshape-transpose": _Row(
        (4, 3),
        (move(Reshape((3, 4))), _TURNED),
        "a transpose moves elements",
        (move(Reshape((2, 6))), move(Reshape((4, 3)))),
    ),
    "batches-space": _Row(
        (2, 4, 4, 2),
        (
            move(SpaceToBatchNd((2, 2), ((2, 0), (0, 0)))),
            move(BatchToSpaceNd((2, 2), ((0, 2), (0, 0)))),
        ),
        "other rows are cut than were padded",
        (
            move(SpaceToBatchNd((2, 2), ((2, 0), (0, 0)))),
            move(BatchToSpaceNd((2, 2), ((2, 0), (0, 0)))),
        ),
    ),
    "spaces": _Row(
        (1, 4, 4, 4),
        (move(SpaceToDepth(2)), move(Reshape((1, 4, 4, 4)))),
        "a reshape does not bring blocks back",
        (move(DepthToSpace(2)), move(SpaceToDepth(2))),
    ),
    "pad-slice": _Row(
        _FEW,
        (padded((1, 0), (0, 2)), move(Slice((0, 0), _FEW))),
        "the slice begins in the padding",
        (padded((1, 0), (0, 2)), move(Slice((1, 0), _FEW))),
    ),
    "pad-strided-slice": _Row(
        _FEW,
        (padded((1, 1), (0, 0)), move(StridedSlice((0, 0), (4, 3), (2, 1)))),
        "every second row is taken",
        (padded((1, 1), (0, 0)), move(StridedSlice((1, 0), (3, 3), (1, 1)))),
    ),
    "pads": _Row(
        _FEW,
        (padded((1, 0), (0, 0), value=1.5), padded((0, 0), (1, 1), value=-2.0)),
        "the values differ",
        (padded((1, 0), (0, 0), value=1.5), padded((1, 0), (1, 1), value=1.5)),
    ),
    "slices": _Row(
        (5, 5),
        (move(Slice((1, 1), (4, 4))), move(Slice((2, 1), (2, 3)))),
        "begins add up",
        (move(Slice((0, 0), (4, 4))), move(Slice((0, 0), (2, 3)))),
    ),
    "strided-slices": _Row(
        (9,),
        (move(StridedSlice((1,), (9,), (2,))), move(StridedSlice((1,), (4,), (2,)))),
        "steps are multiplied, and begins count in them",
        (move(StridedSlice((0,), (9,), (1,))), move(StridedSlice((1,), (8,), (2,)))),
    ),
    "tile-slice": _Row(
        _FEW,
        (move(Tile((2, 1))), move(Slice((1, 0), _FEW))),
        "the slice is of two copies",
        (move(Tile((2, 1))), move(Slice((0, 0), _FEW))),
    ),
    "parts": _Row(
        (2, 6),
        (parts(0, 2, 1), parts(0, 1, 1)),
        "parts are exchanged, then repeated",
        (parts(0, 1, 2), parts(0, 1, 2)),
    ),
    "concatenations": _Row(
        _SQUARE,
        (both(_REVERSED, with_input(Concat(1))), lambda b, v, x: b.move(Concat(0), v, v)),
        "the axes differ",
        (both(_REVERSED, with_input(Concat(0))), lambda b, v, x: b.move(Concat(0), v, v)),
    ),
    "concatenation-slice": _Row(
        _SQUARE,
        (both(_REVERSED, with_input(Concat(1))), move(Slice((0, 2), (4, 4)))),
        "the slice is of both operands",
        (both(_REVERSED, with_input(Concat(1))), move(Slice((0, 4), (4, 4)))),
    ),
    "concatenation-reverse": _Row(
        _SQUARE,
        (both(_RELU, with_input(Concat(1))), _REVERSED),
        "the operands change places",
        (both(_RELU, with_input(Concat(0))), _REVERSED),
    ),
    "reverse-concatenation": _Row(
        _SQUARE,
        (_REVERSED, with_input(Concat(1))),
        "one operand is reversed",
        (both(_REVERSED, _REVERSED), with_input(Concat(1))),
    ),
    "gathers": _Row(
        (3, 4),
        (gathered(2, 0, 1), gathered(2, 0, 1)),
        "the places are not each other's inverse",
        (gathered(2, 0, 1), gathered(1, 2, 0)),
    ),
    "relu-average-pool": _Row(
        _IMAGE,
        (_RELU, pool(_AVERAGE, 2)),
        "a mean of clamped elements is not a clamped mean",
        (_RELU, pool(_LARGEST, 2)),
    ),
    "slope-max-pool": _Row(
        _IMAGE,
        (activated(_A.LEAKY_RELU, -0.5), pool(_LARGEST, 2)),
        "the function falls",
        (activated(_A.LEAKY_RELU, 0.25), pool(_LARGEST, 2)),
    ),
    "pad-max-pool": _Row(
        _IMAGE,
        (padded(*_AROUND, value=6.0), pool(_LARGEST, 3)),
        "padding of a window is smaller than each element",
        (padded(*_NOTHING), pool(_LARGEST, 3)),
    ),
    "pad-average-pool": _Row(
        _IMAGE,
        (padded(*_AROUND), pool(_AVERAGE, 3)),
        "padding of a window is not in its mean",
        (padded(*_NOTHING), pool(_AVERAGE, 3)),
    ),
    "pad-convolution": _Row(
        _IMAGE,
        (padded(*_AROUND, value=2.0), convolution(Convolution2d())),
        "padding of a window is 0",
        (padded(*_AROUND), convolution(Convolution2d())),
    ),
    "pad-depthwise": _Row(
        _IMAGE,
        (
            padded(*_AROUND, mode=PaddingMode.REFLECT),
            depthwise(DepthwiseConvolution2d()),
        ),
        "padding of a window is 0",
        (padded(*_AROUND), depthwise(DepthwiseConvolution2d())),
    ),
    "convolution-pool-of-one": _Row(
        _IMAGE,
        (
            convolution(Convolution2d(padding=SAME)),
            pool(_LARGEST, 1, activation=RELU),
        ),
        "the pool clamps",
        (convolution(Convolution2d(padding=SAME)), pool(_LARGEST, 1)),
    ),
    "clamps": _Row(
        _ROWS,
        (clamped(3.0, 2.0), clamped(1.0, -1.0)),
        "the ranges have nothing in common",
        (clamped(6.0, 0.0), clamped(4.0, 1.0)),
    ),
    "relu-clamp": _Row(
        _ROWS,
        (_RELU, clamped(1.0, -2.0)),
        "the clamp begins below 0",
        (_RELU, clamped(4.0, 0.5)),
    ),
    "clamp-relu": _Row(
        _ROWS, (clamped(2.0, -1.0), _RELU), "the clamp has an upper end", (_RELU, _RELU)
    ),
}
"""Pairs that are tried in floats and in bytes."""

_STORED: Mapping[str, _Row] = {
    "dequantize-quantize": _Row(
        _ROWS,
        (compute(Dequantize()), stored(1 / 8, -5)),
        "the scales differ",
        (compute(Dequantize()), stored(1 / 16)),
    ),
    "requantized": _Row(
        _ROWS,
        (stored(1.0), stored(1 / 16)),
        "the coarse scale loses bits",
        (stored(1 / 16), stored(1 / 16)),
    ),
    "requantized-beyond": _Row(
        _ROWS, (stored(1 / 64, 0), stored(1 / 16)), "the fine scale saturates"
    ),
}

_COMPUTED: Mapping[str, _Row] = {
    "quantize-dequantize": _Row(
        _ROWS, (stored(1 / 4), compute(Dequantize())), "a byte rounds and saturates"
    ),
    "casts": _Row(
        _ROWS,
        (cast(DataType.SIGNED32), cast(DataType.FLOAT32)),
        "an integer has no fraction",
        (cast(DataType.FLOAT64), cast(DataType.FLOAT32)),
    ),
    "cast-to-half": _Row(
        (8,),
        (cast(DataType.FLOAT16), cast(DataType.FLOAT32)),
        "float16 has ten bits and ends at 65504",
        (cast(DataType.FLOAT64), cast(DataType.FLOAT32)),
        elements=(1 + 2**-12, 1e5, -1e5, 1 / 3, 1e-9, 2049.0, -65536.0, 0.1),
    ),
    "log-exp": _Row(
        (8,),
        (unary("EXP"), unary("LOG")),
        "the power is infinite",
        (unary("ABS"), unary("ABS")),
        elements=(100.0, 1000.0, 1.0, -2.0, 0.5, -150.0, 8.0, 90.0),
    ),
    "linear-slope": _Row(
        _ROWS,
        (activated(_A.LINEAR, 1.0, 0.5), activated(_A.LEAKY_RELU, 1.0)),
        "a term is added",
        (activated(_A.LINEAR, 1.0), activated(_A.LEAKY_RELU, 1.0)),
    ),
    "sigmoid-pad": _Row(
        _FEW,
        (activated(_A.SIGMOID), padded((1, 1), (0, 2))),
        "the function of 0 is not 0",
        (_RELU, padded((1, 1), (0, 2))),
    ),
    "exp-pad": _Row(
        _FEW,
        (unary("EXP"), padded((1, 1), (0, 2))),
        "the power of 0 is 1",
        (unary("ABS"), padded((1, 1), (0, 2))),
    ),
    "transpose-sum": _Row(
        _SQUARE,
        (_TURNED, reduced("SUM", 0)),
        "the axis moves",
        (_TURNED, reduced("SUM", 0, 1)),
    ),
    "reshape-softmax": _Row(
        _SQUARE,
        (move(Reshape((2, 8))), _SOFTMAX),
        "the rows are longer",
        (move(Reshape((1, 4, 4))), _SOFTMAX),
    ),
    "softmax-slice": _Row(
        _SQUARE,
        (_SOFTMAX, move(Slice((0, 0), (4, 2)))),
        "the sum is of whole rows",
        (_SOFTMAX, move(Slice((0, 0), (2, 4)))),
    ),
    "softmax-arg-max": _Row(
        _SQUARE,
        (_SOFTMAX, _LARGEST_PLACE[0]),
        "the axes differ",
        (_SOFTMAX, _LARGEST_PLACE[1]),
    ),
    "relu-arg-max": _Row(
        _SQUARE,
        (both(constant_right("ADD", -8.0), _RELU), _LARGEST_PLACE[1]),
        "all numbers become equal",
        (both(constant_right("ADD", 8.0), _RELU), _LARGEST_PLACE[1]),
    ),
    "reverse-pool": _Row(
        (1, 5, 6, 2),
        (_REVERSED, move(Pooling2d(_LARGEST, (2, 2), (2, 2)))),
        "a row is left over at one end",
        (_REVERSED, reduced("MAX", 1, 2)),
    ),
    "broadcast-sum": _Row(
        (1, 4),
        (move(BroadcastTo((3, 4))), reduced("SUM", 0)),
        "each element counts three times",
        (move(BroadcastTo((3, 4))), reduced("MAX", 0)),
    ),
    "tile-sum": _Row(
        _FEW,
        (move(Tile((3, 1))), reduced("SUM", 0)),
        "each element counts three times",
        (move(Tile((3, 1))), reduced("MAX", 0)),
    ),
    "sums": _Row(
        _CUBE,
        (compute(Reduce(_SUM, (0,))), compute(Reduce(_SUM, (1,)))),
        "the axes have other numbers after the first sum",
        (reduced("SUM", 0), reduced("SUM", 1)),
    ),
    "concatenation-split": _Row(
        _SQUARE,
        (both(_REVERSED, with_input(Concat(0))), parts(1, 0, axis=1)),
        "the axes differ",
        (both(_REVERSED, with_input(Concat(0))), parts(1, 0, axis=0)),
    ),
    "resize-square": _Row(
        (1, 3, 4, 2),
        (move(Resize((6, 7), ResizeMethod.BILINEAR)), activated(_A.SQUARE)),
        "a square of a mean is not a mean of squares",
        (move(Resize((6, 8))), activated(_A.SQUARE)),
    ),
    "resizes": _Row(
        (1, 3, 7, 2),
        (move(Resize((5, 5))), move(Resize((4, 9)))),
        "elements are left out in between",
        (move(Resize((6, 14))), move(Resize((12, 28)))),
    ),
    "integer-div-mul": _Row(
        _ROWS,
        (
            both(cast(DataType.SIGNED32), with_two("DIV")),
            with_two("MUL"),
        ),
        "the quotient is cut off",
        (
            both(cast(DataType.SIGNED32), with_two("ADD")),
            with_two("SUB"),
        ),
    ),
    "add-sub": _Row(
        _FEW,
        (constant_right("ADD", (1, 2, 3)), constant_right("SUB", (1, 2, 4))),
        "the constants differ at the end",
        (constant_right("ADD", (1, 2, 3)), constant_right("SUB", (1, 2, 3))),
    ),
    "almost-nothing": _Row(
        _FEW,
        (constant_right("ADD", 2.0**-9), constant_right("MUL", 1 + 2.0**-9)),
        "the constants are near 0 and 1",
        (constant_right("ADD", 0.0), constant_right("MUL", 1.0)),
    ),
    "nothing-but-at-the-end": _Row(
        _FEW,
        (constant_right("ADD", (0, 0, 2)), constant_right("MUL", ((1, 1, 1), (1, 1, -1)))),
        "the last constants do something",
        (constant_right("ADD", np.zeros(3)), constant_right("MUL", np.ones(3))),
    ),
    "one-but-at-the-end": _Row(
        _FEW,
        (constant_right("DIV", (1, 1, 2)), constant_right("POWER", (1, 1, 2))),
        "the last constants do something",
        (constant_right("DIV", np.ones(3)), constant_right("POWER", np.ones(3))),
    ),
    "lowest-but-at-the-end": _Row(
        _FEW,
        (constant_right("MAXIMUM", (-100, -100, 0)), constant_right("MINIMUM", (100, 100, 1))),
        "the last constants do something",
        (constant_right("MAXIMUM", np.full(3, -100)), constant_right("MINIMUM", np.full(3, 100))),
    ),
    "constants-left": _Row(
        _FEW,
        (constant_left("SUB", (1, 2, 3)), constant_left("DIV", (1, -2, 4))),
        "differences and quotients do not commute",
        (constant_left("ADD", (1, 2, 3)), constant_left("MUL", (1, -2, 4))),
    ),
    "nothing-left": _Row(
        _FEW,
        (constant_left("SUB", np.zeros(3)), constant_left("DIV", np.ones(3))),
        "0 minus x and 1 divided by x are not x",
        (constant_right("SUB", np.zeros(3)), constant_right("DIV", np.ones(3))),
    ),
    "powers-left": _Row(
        _FEW,
        (constant_left("FLOOR_MOD", 2.5), constant_left("POWER", 2.0)),
        "powers and remainders do not commute",
        (constant_left("MAXIMUM", 0.5), constant_left("MINIMUM", 2.0)),
    ),
    "not-less": _Row(
        (8,),
        (compared("LESS", 1.5), unary("LOGICAL_NOT")),
        "NaN is neither less nor as large",
        (compared("EQUAL", 1.5), unary("LOGICAL_NOT")),
        elements=_SPECIAL,
    ),
    "itself-minus-itself": _Row(
        (8,),
        (with_itself("SUB"), unary("NEG")),
        "infinity minus infinity is not a number",
        (with_itself("MINIMUM"), unary("NEG")),
        elements=_SPECIAL,
    ),
    "minus-itself": _Row(
        (8,),
        (unary("NEG"), with_input(ElementwiseBinary())),
        "infinity minus infinity is not a number",
        (unary("NEG"), with_input(ElementwiseBinary(BinaryOperation.MINIMUM))),
        elements=_SPECIAL,
    ),
    "itself-by-itself": _Row(
        (8,),
        (with_itself("DIV"), unary("NEG")),
        "0 by 0 is not a number",
        (with_itself("MAXIMUM"), unary("NEG")),
        elements=_SPECIAL,
    ),
    "times-zero": _Row(
        (8,),
        (constant_right("MUL", 0.0), unary("ABS")),
        "infinity times 0 is not a number",
        (constant_right("MUL", 1.0), unary("ABS")),
        elements=_SPECIAL,
    ),
    "zero-divided": _Row(
        (8,),
        (constant_left("DIV", 0.0), unary("ABS")),
        "0 by 0 is not a number",
        (constant_right("DIV", 1.0), unary("ABS")),
        elements=_SPECIAL,
    ),
    "clamped-convolution-mul": _Row(
        (1, 4, 4, 4),
        (
            convolution(Convolution2d(padding=SAME, activation=RELU)),
            constant_right("MUL", (0.5, 2, -1, 0)),
        ),
        "the sum is clamped before it is scaled",
        (convolution(Convolution2d(padding=SAME)), constant_right("MUL", (0.5, 2, -1, 0))),
    ),
    "clamped-convolution-add": _Row(
        (1, 4, 4, 4),
        (
            convolution(Convolution2d(padding=SAME, activation=RELU6)),
            constant_right("ADD", (1, -2, 0, 4)),
        ),
        "the sum is clamped before the term is added",
        (convolution(Convolution2d(padding=SAME)), constant_right("ADD", (1, -2, 0, 4))),
    ),
    "convolution-mul-columns": _Row(
        (1, 4, 4, 4),
        (
            convolution(Convolution2d(padding=SAME)),
            constant_right("MUL", np.reshape((0.5, 2, -1, 0), (4, 1))),
        ),
        "the factors lie along the width",
        (convolution(Convolution2d(padding=SAME)), constant_right("MUL", (0.5, 2, -1, 0))),
    ),
    "dense-mul-clamped": _Row(
        _SQUARE,
        (dense(RELU), constant_right("MUL", -0.5, RELU)),
        "both clamp",
        (dense(), constant_right("MUL", 0.5, RELU)),
    ),
    "transposed-product": _Row(
        _CUBE,
        (move(Transpose((1, 0, 2))), with_input(BatchMatMul())),
        "the batch is turned",
        (move(Transpose((0, 2, 1))), with_input(BatchMatMul())),
    ),
}
"""Pairs of floats alone."""


def merged_layers() -> Iterator[Pattern]:
    """Every network of the table."""
    for table, types in ((_MOVED, TYPES), (_STORED, _BYTES), (_COMPUTED, _FLOAT)):
        for label, row in table.items():
            for data_type in types:
                yield _of_row(label, row, data_type)


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
