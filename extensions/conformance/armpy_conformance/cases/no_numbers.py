"""Cases of NaN and infinities where elements are chosen, clamped or converted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    Attention,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    FusedActivation,
    MaxPoolWithIndices,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    Softmax,
    TopkV2,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.cases import weighted
from armpy_conformance.comparison.seeded_values import anything, grid, stored
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, of

_FLOATS = of(DataType.FLOAT32, DataType.FLOAT16)
_F32 = of(DataType.FLOAT32)
_CLAMPS = (FusedActivation.RELU, FusedActivation.RELU1, FusedActivation.RELU6)


def unusual(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Few numbers, many infinities, many that are not a number; numbers alone of integers."""
    choices: tuple[float, ...] = (0.0, -0.0, -1.5, 2.0, np.inf, -np.inf, np.nan, np.nan)
    if not info.data_type.is_float:  # such as exponents
        choices = tuple(filter(np.isfinite, choices))
    return stored(rng.choice(choices, info.known_shape), info)


def rows(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Rows of NaN alone, beside an infinity, in first, last and middle place; zeros of any sign."""
    shape = info.known_shape
    if len(shape) < 2 or info.num_elements < 7 * shape[-1] or shape[-1] < 3:
        return unusual(rng, info)  # there is no room for them
    values = np.asarray(anything(rng, info), np.float64).reshape(-1, shape[-1])
    values[0] = np.nan
    for row, place, other in ((1, 0, np.inf), (2, -1, -np.inf), (3, shape[-1] // 2, 0)):
        values[row] = np.where(np.isfinite(values[row]), values[row], 0)
        values[row, 1], values[row, place] = other, np.nan
    values[4] = rng.choice((0.0, -0.0), shape[-1])
    values[5], values[6] = -np.inf, np.inf
    return stored(values.reshape(shape), info)


def one(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers whose sums are exact, and a NaN in the middle."""
    values = np.array(grid(rng, info))
    if values.size:
        values[tuple(size // 2 for size in values.shape)] = np.nan
    return values


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _chosen()
    yield from _clamped()
    yield from _converted()
    yield from _reached()


def _chosen() -> Iterator[CaseTemplate]:
    """Return one of several elements, or its position."""
    for function in ArgMinMaxFunction:
        name = function.name.lower()
        for axis, shape in ((-1, (8, 37)), (1, (8, 5, 3))):
            values = rows if axis == -1 else unusual
            operation = Reduce(ReduceOperation[function.name], (axis,))
            yield CaseTemplate(f"no-numbers-{name}{axis}", operation, (shape,), _FLOATS, (values,))
            position = ArgMinMax(function, axis)
            yield CaseTemplate(f"no-numbers-{name}{axis}", position, (shape,), _FLOATS, (values,))
    for largest in (False, True):
        top = TopkV2(5, largest=largest)
        label = f"no-numbers-{'largest' if largest else 'smallest'}"
        yield CaseTemplate(label, top, ((8, 11),), _F32, (rows,))
    for size, stride, channels in (((2, 2), (2, 2), 5), ((3, 3), (1, 1), 33), ((1, 4), (1, 3), 1)):
        pool = Pooling2d(PoolingAlgorithm.MAX, size, stride, Padding.SAME)
        yield CaseTemplate(f"no-numbers-{channels}", pool, ((1, 9, 8, channels),), _F32, (unusual,))
    places = MaxPoolWithIndices((2, 2), (1, 1), (1, 1), Padding.SAME)
    yield CaseTemplate("no-numbers", places, ((1, 9, 8, 3),), _F32, (unusual,))
    for extreme in (BinaryOperation.MAXIMUM, BinaryOperation.MINIMUM):
        label = f"no-numbers-{extreme.name.lower()}"
        yield CaseTemplate(
            label, ElementwiseBinary(extreme), ((9, 17), (9, 17)), _FLOATS, (unusual,)
        )
    yield CaseTemplate("no-numbers", Softmax(), ((8, 37),), _F32, (rows,))


def _clamped() -> Iterator[CaseTemplate]:
    """Clamp elements, alone and after other layers."""
    for function, high, low in (
        (ActivationFunction.RELU, 0.0, 0.0),
        (ActivationFunction.BOUNDED_RELU, 6.0, 0.0),
        (ActivationFunction.BOUNDED_RELU, 1.0, -1.0),
        (ActivationFunction.HARD_SWISH, 0.0, 0.0),
        (ActivationFunction.LEAKY_RELU, 0.1, 0.0),
    ):
        label = f"no-numbers-{function.name.lower()}-{high:g}"
        yield CaseTemplate(label, Activation(function, high, low), ((5, 37),), _FLOATS, (unusual,))
    for clamp in _CLAMPS:
        label = f"no-numbers-{clamp.name.lower()}"
        added = ElementwiseBinary(BinaryOperation.ADD, clamp)
        yield CaseTemplate(label, added, ((5, 37), (5, 37)), _F32, (unusual,))
        for algorithm in (PoolingAlgorithm.MAX, PoolingAlgorithm.AVERAGE):
            pool = Pooling2d(algorithm, (2, 2), (2, 2), activation=clamp)
            yield CaseTemplate(
                f"{label}-{algorithm.name.lower()}", pool, ((1, 6, 6, 19),), _F32, (one,)
            )
        for operation, shapes in (
            (
                Convolution2d(padding=Padding.SAME, activation=clamp),
                ((1, 6, 7, 5), (17, 3, 3, 5), (17,)),
            ),
            (Convolution2d(activation=clamp), ((1, 6, 7, 5), (17, 1, 1, 5), (17,))),
            (
                DepthwiseConvolution2d(padding=Padding.SAME, activation=clamp),
                ((1, 6, 7, 19), (1, 3, 3, 19), (19,)),
            ),
            (FullyConnected(activation=clamp), ((1, 40), (33, 40), (33,))),
            (FullyConnected(activation=clamp), ((5, 40), (33, 40), (33,))),
        ):
            where = "x".join(map(str, (*shapes[0][:1], *shapes[1])))
            yield weighted.line(f"{label}-{where}", operation, shapes, _F32, values=(one, grid))


def _converted() -> Iterator[CaseTemplate]:
    """Convert elements to an integer or a truth value."""
    yield CaseTemplate(
        "no-numbers",
        Quantize(),
        ((5, 37),),
        _F32,
        (unusual,),
        output=Scale(1 / 32, 0.2),
        output_types=(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16),
    )
    integers = (DataType.SIGNED32, DataType.SIGNED64, DataType.BOOLEAN)
    yield CaseTemplate("no-numbers", Cast(), ((5, 37),), _F32, (unusual,), output_types=integers)
    for comparison in ComparisonOperation:
        label = f"no-numbers-{comparison.name.lower()}"
        yield CaseTemplate(label, Comparison(comparison), ((9, 17), (9, 17)), _F32, (unusual,))


def _reached() -> Iterator[CaseTemplate]:
    """Which elements one NaN reaches, and no others."""
    for stride, kernel in (((2, 2), (3, 3)), ((3, 2), (2, 2)), ((1, 1), (2, 3)), ((4, 4), (1, 1))):
        for padding in (Padding.VALID, Padding.SAME):
            spread = TransposeConvolution2d(stride=stride, padding=padding)
            label = f"no-numbers-{padding.name.lower()}-{stride[0]}-{kernel[0]}"
            shapes = ((1, 4, 5, 3), (7, *kernel, 3), (7,))
            yield weighted.line(label, spread, shapes, _F32, values=(one, grid))
    for name, seen in (
        ("causal", Attention(is_causal=True, num_past=2)),
        ("window", Attention(left_window=1, right_window=0)),
        ("all", Attention()),
    ):
        heads = ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6))
        for odd, values in (("key", (grid, one, grid)), ("value", (grid, grid, one))):
            yield CaseTemplate(f"no-numbers-{name}-{odd}", seen, heads, _F32, values)
    for method in ResizeMethod:
        resize = Resize((9, 7), method)
        yield CaseTemplate(
            f"no-numbers-{method.name.lower()}", resize, ((1, 4, 5, 3),), _F32, (one,)
        )
