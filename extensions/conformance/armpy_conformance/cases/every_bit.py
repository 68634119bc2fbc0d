"""Cases in which every bit of an element counts: long mantissas, large integers, close numbers.

Each sum of these elements is exact in any order. A backend that computes in a shorter type, such as
float32 in float16 or integers in floats, gives other results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from armpy.ops import (
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BatchToSpaceNd,
    BinaryOperation,
    BroadcastTo,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    Cumulate,
    DepthToSpace,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    Gather,
    GatherElements,
    GatherNd,
    Operation,
    Pad,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    ReverseSequence,
    ReverseV2,
    ScatterElements,
    ScatterNd,
    Select,
    Slice,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Stack,
    StridedSlice,
    Tile,
    TopkV2,
    Transpose,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import (
    Values,
    anything,
    below,
    exactly,
    stored,
    thorough,
)
from armpy_conformance.sampling.case_template import CaseTemplate, indexed, of

ALL_BITS = "all-bits"
"""Beginning of the labels of cases with constants whose last bit shows in the results."""

_INTEGERS = (DataType.SIGNED32, DataType.SIGNED64)
_WORDS = of(DataType.FLOAT32, *_INTEGERS)
_FLOAT = of(DataType.FLOAT32)
_ORDERED = of(
    DataType.FLOAT32,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
    *_INTEGERS,
)

_MANTISSA_BITS = 13
"""More than float16 and bfloat16 have, and few enough that a thousand elements add up exactly."""

_INTEGER_BITS: Mapping[DataType, tuple[int, int]] = {
    DataType.SIGNED32: (24, 27),
    DataType.SIGNED64: (53, 58),
}
"""Least and greatest number of bits: more than a float's mantissa, and room for sums."""


def long_numbers(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Odd multiples of 2^-13 from 1 to 2; odd integers that no float of their width holds."""
    if info.data_type is DataType.BOOLEAN:
        return anything(rng, info)
    if info.data_type.is_float:
        low, high = 2 ** (_MANTISSA_BITS - 1), 2**_MANTISSA_BITS
        odd = 2 * rng.integers(low, high, info.known_shape) + 1
        return stored(odd / 2.0**_MANTISSA_BITS, info)
    least, most = _INTEGER_BITS[info.data_type]
    odd = 2 * rng.integers(2 ** (least - 1), 2 ** (most - 1), info.known_shape) + 1
    return stored(odd * _signs(rng, info), info)


def close_numbers(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers of four neighbours that are equal in a shorter type."""
    steps = rng.integers(0, 4, info.known_shape)
    if info.data_type.is_float:
        return stored(1 + steps / 2.0**_MANTISSA_BITS, info)
    return stored(2 ** (_INTEGER_BITS[info.data_type][0] + 1) + steps, info)


def few_numbers(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers, with a NaN in front and an infinity at the end, that no other element may meet."""
    elements = anything(rng, info)
    if info.data_type.is_float:
        elements.flat[0], elements.flat[-1] = np.nan, -np.inf
    return elements


def _all_bits(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Odd numbers of 24 bits in even places, and after each what leaves its lower half."""
    elements = 2 * rng.integers(2**22, 2**23, info.known_shape) + 1
    elements.reshape(-1)[1::2] = -(elements.reshape(-1)[::2] & ~0xFFF)
    return stored(elements, info)


def _ones(rng: np.random.Generator, info: TensorInfo) -> Array:
    return np.ones(info.known_shape, info.data_type.dtype)


def _all_terms(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Odd numbers of 24 bits."""
    return stored(2 * rng.integers(2**22, 2**23, info.known_shape) + 1, info)


def _checkered(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Truth values in turn, so that the first and the last element have different ones."""
    truths: Array = np.arange(info.num_elements) % 2 == 0
    return truths.reshape(info.known_shape)


def _upper_halves(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers around 2^23 of 12 bits, whose sums with numbers of 24 bits are exact."""
    return stored(-(rng.integers(2**22, 2**23, info.known_shape) & ~0x7FF), info)


def _signs(rng: np.random.Generator, info: TensorInfo) -> Array:
    """1 and -1, whose products with long numbers are exact."""
    signs: Array = rng.choice(np.array([-1, 1]), info.known_shape).astype(info.data_type.dtype)
    return signs


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _moved()
    yield from _arithmetic()
    yield from _weighted()
    yield from _orders()


_IMAGE = (1, 4, 6, 4)

_MOVED: Sequence[tuple[Operation, Sequence[tuple[int, ...]]]] = (
    (Concat(1), ((2, 3), (2, 2))),
    (Stack(1), ((2, 3), (2, 3))),
    (Transpose((1, 0)), ((3, 5),)),
    (Pad(((1, 0), (0, 2))), ((2, 3),)),
    (Slice((1, 0), (2, 3)), ((4, 3),)),
    (StridedSlice((0, 0), (4, 5), (2, 2)), ((4, 5),)),
    (Tile((2, 3)), ((2, 3),)),
    (BroadcastTo((2, 3)), ((1, 3),)),
    (Splitter(2, 1), ((3, 4),)),
    (ReverseV2((1,)), ((3, 4),)),
    (DepthToSpace(2), (_IMAGE,)),
    (SpaceToDepth(2), (_IMAGE,)),
    (SpaceToBatchNd((2, 2), ((0, 0), (0, 0))), (_IMAGE,)),
    (BatchToSpaceNd((2, 2), ((0, 0), (0, 0))), ((4, 2, 3, 2),)),
    (Resize((8, 3), ResizeMethod.NEAREST_NEIGHBOR), (_IMAGE,)),
)


_PLACED: Sequence[tuple[Operation, Sequence[tuple[int, ...]], Values]] = (
    (Gather(0), ((5, 3), (4,)), below(5)),
    (GatherNd(), ((5, 3), (4, 1)), below(5)),
    (GatherElements(0), ((4, 3), (2, 3)), below(4)),
    (ReverseSequence(0, 1), ((5, 3), (3,)), exactly((4, 0, 3))),
    (ScatterElements(0), ((4, 3), (1, 3), (1, 3)), below(4)),
    (ScatterNd(), ((5, 3), (2, 1), (2, 3)), exactly(((0,), (3,)))),
)


def _moved() -> Iterator[CaseTemplate]:
    """Operations whose outputs hold elements of their inputs."""
    for operation, shapes in _MOVED:
        yield CaseTemplate("every-bit", operation, shapes, _WORDS, (long_numbers,))
        yield CaseTemplate("few-numbers", operation, shapes, _FLOAT, (few_numbers,))
    for name, numbers in {"every-bit": long_numbers, "few-numbers": few_numbers}.items():
        yield CaseTemplate(
            name,
            Select(),
            ((3, 4),) * 3,
            lambda types: types[1] in (DataType.FLOAT32, *_INTEGERS),
            (_checkered, numbers),
        )
    for operation, shapes, places in _PLACED:
        values = (few_numbers, places, few_numbers)
        yield CaseTemplate("few-numbers", operation, shapes, _FLOAT, values, infos=indexed)
    for label, index_type in {"narrow": DataType.SIGNED32, "wide": DataType.SIGNED64}.items():
        yield CaseTemplate(
            f"every-bit-{label}-indices",
            Gather(0),
            ((5, 3), (4,)),
            _WORDS,
            (long_numbers, below(5)),
            infos=partial(indexed, index_type=index_type),
        )


def _arithmetic() -> Iterator[CaseTemplate]:
    """Functions of single elements, and sums of them."""
    pair = ((3, 8), (3, 8))
    for function in (
        BinaryOperation.ADD,
        BinaryOperation.SUB,
        BinaryOperation.MAXIMUM,
        BinaryOperation.MINIMUM,
    ):
        name = f"{function.name.lower()}-every-bit"
        yield CaseTemplate(name, ElementwiseBinary(function), pair, _WORDS, (long_numbers,))
    product = ElementwiseBinary(BinaryOperation.MUL)
    yield CaseTemplate("mul-every-bit", product, pair, _WORDS, (long_numbers, _signs))
    yield CaseTemplate("mul-every-bit-right", product, pair, _WORDS, (_signs, long_numbers))
    for unary in (UnaryOperation.ABS, UnaryOperation.NEG):
        name = f"{unary.name.lower()}-every-bit"
        yield CaseTemplate(name, ElementwiseUnary(unary), ((3, 8),), _WORDS, (long_numbers,))
    for kind in (
        ReduceOperation.SUM,
        ReduceOperation.MEAN,
        ReduceOperation.MAX,
        ReduceOperation.MIN,
    ):
        # A mean of integers is rounded, which is another subject.
        types = _FLOAT if kind is ReduceOperation.MEAN else _WORDS
        name = f"{kind.name.lower()}-every-bit"
        yield CaseTemplate(name, Reduce(kind, (1,)), ((3, 8),), types, (long_numbers,))
    yield CaseTemplate("every-bit", Cumulate(axis=1), ((3, 8),), _WORDS, (long_numbers,))
    for algorithm in (PoolingAlgorithm.AVERAGE, PoolingAlgorithm.MAX):
        name = f"{algorithm.name.lower()}-every-bit"
        pool = Pooling2d(algorithm, (2, 2), (2, 2))
        yield CaseTemplate(name, pool, (_IMAGE,), _FLOAT, (long_numbers,))
    bilinear = Resize((8, 12), ResizeMethod.BILINEAR)
    yield CaseTemplate("bilinear-every-bit", bilinear, (_IMAGE,), _FLOAT, (long_numbers,))


def _weighted() -> Iterator[CaseTemplate]:
    """Sums of products: long numbers times signs, and signs times long weights."""
    layers: Sequence[tuple[Operation, Sequence[tuple[int, ...]], tuple[int, ...]]] = (
        (Convolution2d(), ((1, 4, 4, 3), (2, 3, 3, 3), (2,)), (1, 2)),
        (DepthwiseConvolution2d(), ((1, 4, 4, 3), (1, 3, 3, 3), (3,)), (1, 2)),
        (TransposeConvolution2d((2, 2)), ((1, 3, 3, 2), (2, 3, 3, 2), (2,)), (1, 2)),
        (FullyConnected(), ((3, 9), (4, 9), (4,)), (1, 2)),
        (BatchMatMul(), ((2, 3, 9), (2, 9, 4)), ()),
    )
    for operation, shapes, constants in layers:
        for label, factors in (
            ("every-bit", (long_numbers, _signs)),
            ("every-bit-of-weights", (_signs, long_numbers)),
        ):
            yield CaseTemplate(label, operation, shapes, _FLOAT, factors, constants=constants)
    products: Sequence[tuple[Operation, Sequence[tuple[int, ...]]]] = (
        (FullyConnected(), ((3, 2), (5, 2))),
        (Convolution2d(), ((1, 2, 3, 2), (5, 1, 1, 2))),
    )
    for operation, shapes in products:
        equal = (_ones, _all_bits)
        yield CaseTemplate(ALL_BITS, operation, shapes, _FLOAT, equal, constants=(1,))
    terms = (_upper_halves, _all_terms)
    for function in (BinaryOperation.ADD, BinaryOperation.MAXIMUM):
        name = f"{ALL_BITS}-{function.name.lower()}"
        operation = ElementwiseBinary(function)
        yield CaseTemplate(name, operation, ((3, 8),) * 2, _FLOAT, terms, constants=(1,))


def _orders() -> Iterator[CaseTemplate]:
    """Comparisons of close numbers, and of numbers of the whole range, signed or not."""
    for function in ComparisonOperation:
        name = f"{function.name.lower()}-close"
        yield CaseTemplate(name, Comparison(function), ((5, 8),) * 2, _WORDS, (close_numbers,))
    choices: Sequence[tuple[str, Operation]] = (
        *((function.name.lower(), ArgMinMax(function, 1)) for function in ArgMinMaxFunction),
        ("largest", TopkV2(3)),
        ("smallest", TopkV2(3, largest=False)),
        ("max", Reduce(ReduceOperation.MAX, (1,))),
        ("min", Reduce(ReduceOperation.MIN, (1,))),
    )
    for name, operation in choices:
        yield CaseTemplate(f"{name}-close", operation, ((5, 40),), _WORDS, (close_numbers,))
    for name, operation in choices:
        yield CaseTemplate(f"{name}-whole-range", operation, ((5, 40),), _ORDERED, (thorough,))
    largest_of_window = Pooling2d(PoolingAlgorithm.MAX, (2, 2), (2, 2))
    yield CaseTemplate("max-whole-range", largest_of_window, ((2, 4, 6, 5),), _ORDERED, (thorough,))
