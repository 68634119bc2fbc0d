"""Cases of what comes together seldom: forms of operands, of windows, of signs, of stored ranges.

Kernels have a way of their own for each of these, or forget that they need one. A line is there
for one form, and goes over the operations that know it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armpy.ops import (
    BatchMatMul,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    FusedActivation,
    LayerNormalization,
    Operation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Splitter,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.weighted import line, per_output
from armpy_conformance.comparison.seeded_values import anything, stored
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, of

_FLOAT = of(DataType.FLOAT32)
_FLOAT_AND_BYTES = of(DataType.FLOAT32, DataType.QASYMM_S8)
_SAME = Padding.SAME


def _bytes(types: Types) -> bool:
    """Select bytes with symmetric weights, as most networks have them."""
    return types[:2] == (DataType.QASYMM_S8, DataType.QSYMM_S8)


def _float_and_bytes(types: Types) -> bool:
    """Select these, and float32."""
    return _FLOAT(types) or _bytes(types)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _stretched()
    yield from _signs()
    yield from _windows()
    yield from _ranges()
    yield from _far_from_zero()
    yield from _empty()


def _stretched() -> Iterator[CaseTemplate]:
    """Operands that are stretched in the middle, or in the batch alone."""
    for label, shapes in (
        ("middle", ((2, 3, 5), (2, 1, 5))),
        ("middle-left", ((2, 1, 5), (2, 3, 5))),
        ("batch", ((1, 3, 5), (2, 3, 5))),
    ):
        yield CaseTemplate(
            f"sub-{label}", ElementwiseBinary(BinaryOperation.SUB), shapes, _FLOAT_AND_BYTES
        )
    for label, shapes in (
        ("batch-of-one", ((1, 3, 4), (2, 4, 5))),
        ("batch-of-one-right", ((2, 3, 4), (1, 4, 5))),
    ):
        yield line(label, BatchMatMul(), shapes, constants=())


def _signed(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers of either sign, none of which is near 0."""
    size = rng.integers(1, 24, info.known_shape) / 4
    return stored(size * rng.choice((-1.0, 1.0), info.known_shape), info)


def _zeros_of_signs(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Zeros of both signs, and some numbers of both."""
    return stored(rng.choice((0.0, -0.0, 1.5, -1.5), info.known_shape), info)


def _signs() -> Iterator[CaseTemplate]:
    """Numbers to be divided by, and coordinates, in all quadrants and on the axes."""
    kinds = BinaryOperation
    for kind in (kinds.DIV, kinds.FLOOR_DIV, kinds.FLOOR_MOD, kinds.TRUNC_MOD, kinds.ATAN2):
        is_angle = kind is kinds.ATAN2
        types = _FLOAT if is_angle else of(DataType.FLOAT32, DataType.SIGNED32)
        operation = ElementwiseBinary(kind)
        yield CaseTemplate(
            f"{kind.name.lower()}-signs", operation, ((9, 9),) * 2, types, (_signed,)
        )
    for kind in (kinds.DIV, kinds.ATAN2):
        operation = ElementwiseBinary(kind)
        values = (_zeros_of_signs,)
        yield CaseTemplate(f"{kind.name.lower()}-zeros", operation, ((9, 9),) * 2, _FLOAT, values)


def _windows() -> Iterator[CaseTemplate]:
    """Windows that are even, of one element, larger than the image; padding at one side."""
    image = (2, 5, 6, 3)
    ends: dict[str, tuple[tuple[int, int], Operation, Operation]] = {}
    for label, size, options in (
        ("even", (2, 2), {"padding": _SAME}),
        ("even-stride", (4, 4), {"padding": _SAME, "stride": (2, 2)}),
        ("one-element-stride", (1, 1), {"stride": (2, 3)}),
        ("one-element-padding", (1, 1), {"padding": ((1, 0), (0, 2))}),
        ("wider-than-image", (7, 9), {"padding": _SAME}),
        ("stride-beyond", (2, 1), {"stride": (3, 4)}),
    ):
        ends[label] = (
            size,
            Convolution2d(**options),
            DepthwiseConvolution2d(**options),
        )
        if label != "one-element-padding":  # windows of padding alone have no mean
            pool = Pooling2d(PoolingAlgorithm.AVERAGE, size, **options)
            yield CaseTemplate(f"average-{label}", pool, (image,), _FLOAT_AND_BYTES)
    for label, (size, conv, depthwise) in ends.items():
        yield line(label, conv, (image, (4, *size, 3), (4,)), _float_and_bytes)
        yield line(label, depthwise, (image, (1, *size, 3), (3,)), _float_and_bytes)
    empty = (image, (4, 2, 2, 3), (4,))
    yield line("no-scale", Convolution2d(), empty, _bytes, infos=_without_a_channel)
    for label, pads in (("behind", ((0, 0), (0, 2))), ("before", ((0, 0), (2, 0)))):
        yield CaseTemplate(f"last-{label}", Pad(pads), ((3, 4),), _FLOAT_AND_BYTES)


def _without_a_channel(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Weights whose second channel has no scale, as nothing is in it."""
    infos = per_output(template, types)
    weights, bias = infos[1], infos[2]
    assert weights is not None
    assert bias is not None
    assert weights.quantization is not None
    assert bias.quantization is not None
    for index, info in ((1, weights), (2, bias)):
        quantization = info.quantization
        assert quantization is not None
        scales = tuple(0.0 if n == 1 else s for n, s in enumerate(quantization.scales))
        infos[index] = TensorInfo(
            info.shape,
            info.data_type,
            Quantization(scales, quantization.zero_points, quantization.axis),
        )
    return infos


def _largest(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Nothing but the largest elements."""
    kind = info.data_type
    if kind.is_quantized:
        return np.full(info.known_shape, kind.integer_range[1], kind.dtype)
    return anything(rng, info)


def _ranges() -> Iterator[CaseTemplate]:
    """Clamps at a zero point below 0, as converters choose it, and sums of many bits."""
    low = Scale(1 / 16, -1.0)
    for kind in (FusedActivation.RELU, FusedActivation.RELU6):
        name = f"{kind.name.lower()}-at-lowest"
        bytes_only = of(DataType.QASYMM_S8)
        added = ElementwiseBinary(BinaryOperation.ADD, kind)
        yield CaseTemplate(name, added, ((5, 9), (5, 9)), bytes_only, output=low)
        conv, dense = Convolution2d(activation=kind), FullyConnected(kind)
        yield line(name, conv, ((1, 5, 5, 3), (4, 2, 2, 3), (4,)), _bytes, output=low)
        yield line(name, dense, ((3, 9), (5, 9), (5,)), _bytes, output=low)
    many = ((2, 700), (3, 700), None)
    large = Scale(40.0)
    yield line("sums-of-24-bits", FullyConnected(), many, _bytes, values=(_largest,), output=large)
    mean = Reduce(ReduceOperation.MEAN, (1,))
    yield CaseTemplate("mean-of-many", mean, ((3, 600),), of(DataType.QASYMM_S8), (_largest,))


def _around_4096(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers that differ little in relation to their size."""
    return stored(4096 + rng.integers(-8, 9, info.known_shape) / 8, info)


def _far_from_zero() -> Iterator[CaseTemplate]:
    """Means that are large beside how numbers differ from them."""
    normalization = LayerNormalization()
    # The mean of 32 eighths is a float32: to round that of 40 would move all results by 3e-4.
    yield CaseTemplate("far-from-0", normalization, ((3, 32), None), _FLOAT, (_around_4096,))


def _empty() -> Iterator[CaseTemplate]:
    """Operands and sizes of 0 in each place, where the outputs have elements."""
    full, none = (2, 3), (2, 0)
    rows: tuple[tuple[str, Operation, tuple[tuple[int, ...], ...]], ...] = (
        ("first", Concat(1), (none, full, full)),
        ("middle", Concat(1), (full, none, full)),
        ("last", Concat(-1), (full, full, none)),
        ("middle", Splitter(3, 1, (2, 0, 1)), (full,)),
        ("padded", Pad(((0, 0), (1, 2))), (none,)),
        *(
            (f"{kind.name.lower()}-of-nothing", Reduce(kind, (1,)), ((2, 0, 3),))
            for kind in (ReduceOperation.SUM, ReduceOperation.PROD)
        ),
        ("without-depth", BatchMatMul(), ((2, 3, 0), (2, 0, 4))),
    )
    for label, operation, shapes in rows:
        yield CaseTemplate(f"empty-{label}", operation, shapes, _FLOAT, (anything,))
