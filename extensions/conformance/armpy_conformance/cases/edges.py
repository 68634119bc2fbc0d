"""Cases on edges: equal elements, numbers on thresholds, halves, square matrices turned over.

The compared results are exact in every type, so a backend is right or wrong, never near.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BinaryOperation,
    BoxWithNmsLimit,
    BroadcastTo,
    Comparison,
    ComparisonOperation,
    Convolution2d,
    DepthwiseConvolution2d,
    DetectionPostProcess,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    LogicalBinary,
    NmsKernel,
    NonMaxSuppression,
    Operation,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Prelu,
    Quantize,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    Select,
    SoftNonMaxSuppression,
    TopkV2,
    Transpose,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.weighted import line
from armpy_conformance.comparison.seeded_values import Values, anything, exactly, few, reals
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, of

_FLOAT_AND_BYTES = of(DataType.FLOAT32, DataType.QASYMM_S8)
_BYTES = of(DataType.QASYMM_S8, DataType.QASYMM_U8)
_EIGHTHS = (Scale(1 / 8, 0.0),)

_HALVES = np.arange(-6.5, 7.0, 0.5)
_NEAR_HALVES = (0.49999997, -0.49999997, 8388609.0, -8388609.0, 4194304.5, -4194303.5)
"""What adding a half and cutting off rounds wrong."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _ties()
    yield from _boxes()
    yield from _halves()
    yield from _bends()
    yield from _square()


def equal(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements that are all the same."""
    return np.full(info.known_shape, 3, info.data_type.dtype)


def plateaus(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Pairs of equal elements, the largest and the smallest ones at both ends."""
    flat = np.repeat(np.arange(info.num_elements // 2 + 1) % 3, 2)[: info.num_elements]
    return flat.reshape(info.known_shape).astype(info.data_type.dtype)


def _ties() -> Iterator[CaseTemplate]:
    """The first of equal elements, or the last one, along each axis."""
    fills: dict[str, Values] = {"equal": equal, "plateaus": plateaus, "few": few}
    for label, values in fills.items():
        for function in ArgMinMaxFunction:
            for axis in (0, 1):
                yield CaseTemplate(
                    f"{function.name.lower()}-{label}-axis_{axis}",
                    ArgMinMax(function, axis),
                    ((5, 8),),
                    _FLOAT_AND_BYTES,
                    (values,),
                )
        for k, shape in ((4, (3, 9)), (17, (2, 40)), (1, (3, 8))):
            for largest in (True, False):
                yield CaseTemplate(
                    f"{label}-{k}-{'largest' if largest else 'smallest'}",
                    TopkV2(k, largest=largest),
                    (shape,),
                    _FLOAT_AND_BYTES,
                    (values,),
                )


_PAIRED = ((0, 0, 2, 4), (0, 0, 2, 2), (0, 0, 4, 4), (8, 8, 10, 12), (8, 8, 10, 10), (9, 9, 9, 9))
"""Boxes that overlap by exactly a half, or by a quarter, of what both cover; one has no area."""


def _boxes() -> Iterator[CaseTemplate]:
    """Scores and overlaps on their thresholds, and scores that are equal."""
    scores = {
        "on-the-score": (0.5, 0.5, 0.75, 0.5, 0.25, 0.5),
        "equal-scores": (0.75,) * 6,
        "falling": (0.875, 0.75, 0.625, 0.5, 0.375, 0.25),
        "rising": (0.25, 0.375, 0.5, 0.625, 0.75, 0.875),
    }
    floats = of(DataType.FLOAT32)
    for label, class_scores in scores.items():
        for threshold in (0.5, 0.25):
            name = f"{label}-{threshold:g}"
            yield CaseTemplate(
                name,
                NonMaxSuppression(6, threshold, 0.5),
                ((1, 6, 4), (1, 1, 6)),
                floats,
                (reals(_PAIRED), reals(class_scores)),
            )
            yield CaseTemplate(
                name,
                SoftNonMaxSuppression(6, threshold, 0.5),
                ((6, 4), (6,)),
                floats,
                (reals(_PAIRED), reals(class_scores)),
            )
            yield CaseTemplate(
                name,
                BoxWithNmsLimit(0.5, 6, NmsKernel.HARD, threshold, 1.0, 0.5),
                ((6, 2), (6, 8), (6,)),
                floats,
                (
                    reals(np.stack([class_scores, class_scores], axis=1)),
                    reals(np.tile(_PAIRED, 2)),
                    exactly((0,) * 6),
                ),
            )
            for is_regular in (False, True):
                yield CaseTemplate(
                    f"{name}{'-regular' if is_regular else ''}",
                    DetectionPostProcess(6, 1, 6, 0.5, threshold, 1, use_regular_nms=is_regular),
                    ((1, 6, 4), (1, 6, 2), (6, 4)),
                    floats,
                    (
                        reals(np.zeros((6, 4))),
                        reals([(0.0, score) for score in class_scores]),
                        reals(_centred()),
                    ),
                )


def _centred() -> Array:
    """The boxes as anchors: centres and sizes."""
    y1, x1, y2, x2 = np.transpose(_PAIRED).astype(np.float64)
    return np.stack([(y1 + y2) / 2, (x1 + x2) / 2, y2 - y1, x2 - x1], axis=1)


def _halves() -> Iterator[CaseTemplate]:
    """Numbers that lie between two that can be stored."""
    numbers = (*_HALVES, *_NEAR_HALVES, -0.0)
    for function in (UnaryOperation.ROUND, UnaryOperation.FLOOR, UnaryOperation.CEIL):
        yield CaseTemplate(
            f"{function.name.lower()}-halves",
            ElementwiseUnary(function),
            ((len(numbers),),),
            of(DataType.FLOAT32),
            (reals(numbers),),
        )
    for label, output in (("halves-around-0", Scale(1.0)), ("halves-at-the-end", Scale(1.0, 1.0))):
        yield CaseTemplate(
            label,
            Quantize(),
            ((len(_HALVES),),),
            of(DataType.FLOAT32),
            (reals(_HALVES),),
            output=output,
            output_types=(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16),
            is_exact=True,
        )
    stored = exactly(np.arange(-20, 20))
    lines: tuple[tuple[Operation, int], ...] = (
        (Quantize(), 1),
        (ElementwiseBinary(), 2),
        (Activation(ActivationFunction.RELU), 1),
        (Activation(ActivationFunction.LEAKY_RELU, 0.5), 1),
    )
    for operation, count in lines:
        # Of twice the scale: every odd element is a half.
        yield CaseTemplate(
            f"stored-halves-{getattr(getattr(operation, 'function', None), 'name', 'all').lower()}",
            operation,
            ((40,),) * count,
            of(DataType.QASYMM_S8),
            (stored, exactly(np.zeros(40))) if count == 2 else (stored,),
            _EIGHTHS,
            Scale(1 / 4),
            (DataType.QASYMM_S8,) if isinstance(operation, Quantize) else None,
            is_exact=isinstance(operation, Quantize),
        )
    for kind, shape in ((ReduceOperation.MEAN, (12, 2)), (ReduceOperation.MEAN, (6, 4))):
        yield CaseTemplate(
            f"mean-halves-of-{shape[1]}", Reduce(kind, (1,)), (shape,), _BYTES, (anything,)
        )
    average = Pooling2d(PoolingAlgorithm.AVERAGE, (1, 2), (1, 2))
    yield CaseTemplate("average-halves", average, ((1, 4, 10, 3),), _BYTES, (anything,), _EIGHTHS)
    for method in ResizeMethod:
        for corners, centres in ((False, False), (True, False), (False, True)):
            label = f"{method.name.lower()}{'-corners' * corners}{'-centres' * centres}"
            for height, width in ((8, 2), (3, 7)):
                yield CaseTemplate(
                    f"{label}-halves-{height}-{width}",
                    Resize((height, width), method, corners, centres),
                    ((1, 4, 4, 2),),
                    _FLOAT_AND_BYTES,
                    (anything,),
                    _EIGHTHS,
                )


def _bends() -> Iterator[CaseTemplate]:
    """Activations at the numbers where their functions bend, and beside them."""
    numbers = (-6.0, -3.0, -1.0, -0.125, 0.0, 0.125, 1.0, 3.0, 6.0, 6.125, -3.125, 2.875)
    for function, a, b in (
        (ActivationFunction.RELU, 0.0, 0.0),
        (ActivationFunction.BOUNDED_RELU, 6.0, 0.0),
        (ActivationFunction.BOUNDED_RELU, 1.0, -1.0),
        (ActivationFunction.LEAKY_RELU, 0.25, 0.0),
        (ActivationFunction.HARD_SWISH, 0.0, 0.0),
        (ActivationFunction.ABS, 0.0, 0.0),
    ):
        yield CaseTemplate(
            f"{function.name.lower()}-bends-{a:g}",
            Activation(function, a, b),
            ((12,),),
            _FLOAT_AND_BYTES,
            (reals(numbers),),
            _EIGHTHS,
        )


def _square() -> Iterator[CaseTemplate]:
    """Matrices with as many rows as columns: only the elements distinguish them."""
    yield CaseTemplate("square", Transpose((1, 0)), ((9, 9),), _FLOAT_AND_BYTES, (anything,))
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        name = "cube-" + "".join(map(str, order))
        yield CaseTemplate(name, Transpose(order), ((5, 5, 5),), _FLOAT_AND_BYTES, (anything,))
    for x, y in ((True, False), (False, True), (True, True), (False, False)):
        yield line(
            f"square{'-x' * x}{'-y' * y}",
            BatchMatMul(transpose_x=x, transpose_y=y),
            ((2, 7, 7), (2, 7, 7)),
            constants=(),
        )
    yield line("square", FullyConnected(), ((7, 7), (7, 7), (7,)))
    sides = ((1, 5, 5, 5), (5, 5, 5, 5), (5,))
    same = Convolution2d(padding=Padding.SAME)
    yield line("all-sides-equal", same, sides)
    yield line("all-sides-equal", TransposeConvolution2d(padding=Padding.SAME), sides)
    deep = ((1, 3, 3, 3), (1, 3, 3, 3), (3,))
    yield line("all-sides-equal", DepthwiseConvolution2d(padding=Padding.SAME), deep)
    yield from _square_broadcasts()


def _square_broadcasts() -> Iterator[CaseTemplate]:
    """Operands that fit on either side of a square: they lie along the last axes."""
    rows: Sequence[tuple[Operation, Sequence[tuple[int, ...]]]] = (
        *((ElementwiseBinary(BinaryOperation.SUB), shapes) for shapes in _SQUARES),
        *((Comparison(ComparisonOperation.LESS), shapes) for shapes in _SQUARES),
        *((Prelu(), shapes) for shapes in _SQUARES[:2]),
        (BroadcastTo((5, 5)), ((5,),)),
        (BroadcastTo((3, 3, 3)), ((3, 3),)),
    )
    for operation, shapes in rows:
        name = "x".join(str(len(shape)) for shape in shapes)
        yield CaseTemplate(f"square-rank-{name}", operation, shapes, values=(anything,))
    for shapes in _SQUARES:
        types = of(DataType.BOOLEAN)
        name = "x".join(str(len(shape)) for shape in shapes)
        yield CaseTemplate(f"square-rank-{name}", LogicalBinary(), shapes, types, (anything,))
    for index, side in enumerate(("condition", "left", "right")):
        for square in ((5, 5), (3, 3, 3)):
            three: list[tuple[int, ...]] = [square] * 3
            three[index] = square[1:]
            yield CaseTemplate(
                f"square-{side}-rank-{len(square)}",
                Select(),
                three,
                lambda types: types[1] in (DataType.FLOAT32, DataType.QASYMM_S8),
                (anything,),
            )


_SQUARES: Sequence[Sequence[tuple[int, ...]]] = (
    ((5, 5), (5,)),
    ((3, 3, 3), (3, 3)),
    ((3, 3, 3), (3,)),
    ((5,), (5, 5)),
)
"""Shapes of which the smaller one fits in front as well."""
