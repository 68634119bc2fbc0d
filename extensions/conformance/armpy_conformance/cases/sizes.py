"""Cases of large tensors: long dimensions, more than a cache holds, many tiles, odd channels.

Each is there for what counts in it: more than a 16-bit number, in one dimension or in a product of
several; more bytes than usual caches have; several tiles in each of several images; rows that
begin at every alignment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    Concat,
    Convolution2d,
    Cumulate,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    Gather,
    L2Normalization,
    LogSoftmax,
    Operation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ReverseV2,
    Slice,
    Softmax,
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
from armpy_conformance.cases.weighted import bias_elements, line
from armpy_conformance.comparison.seeded_values import (
    Values,
    anything,
    below,
    distinct,
    eighths,
    grid,
)
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, indexed, of

LONG = 65_543
"""A prime above 2^16."""

_FLOAT = of(DataType.FLOAT32)


def _bytes(types: Types) -> bool:
    """Select bytes, with weights that have no zero point."""
    weights = types[1] if len(types) > 1 else types[0]
    return types[0] is DataType.QASYMM_S8 and weights in (types[0], DataType.QSYMM_S8)


def _bytes_and_weights(types: Types) -> bool:
    """Select bytes where weights of them are symmetric."""
    return types[:2] == (DataType.QASYMM_S8, DataType.QSYMM_S8)


_WEIGHTED = {"floats": _FLOAT, "bytes": _bytes_and_weights}
_TYPES = {"floats": _FLOAT, "bytes": _bytes}
_SAME = Padding.SAME
_MANY_ELEMENTS = 1_048_583
"""More elements than 2^20."""

_WIDE_CACHE, _WIDEST_CACHE = 70_001, 530_017
"""Floats that take more than 256 KiB, and more than 2 MiB."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _long_dimensions()
    yield from _caches()
    yield from _tiles()
    yield from _channels()
    yield from _long_rows()
    yield from _odd_rows_of_bytes()


def _one_peak(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements of the lower half, and one larger one after the first 65,536."""
    elements = np.minimum(anything(rng, info), np.zeros((), info.data_type.dtype))
    elements.reshape(-1)[-3] = 5
    return elements


def _far_indices(_: np.random.Generator, info: TensorInfo) -> Array:
    """Indices that a 16-bit number cannot hold, and some that it can."""
    return np.resize([LONG - 1, 0, 65_536, 65_535, 7], info.known_shape).astype(
        info.data_type.dtype
    )


def _long_dimensions() -> Iterator[CaseTemplate]:
    """Dimensions, and places in them, above 65,535."""
    column, row = (LONG, 1), (1, LONG)
    rows: tuple[tuple[str, Operation, tuple[tuple[int, ...], ...], Values], ...] = (
        ("column", Activation(ActivationFunction.RELU), (column,), anything),
        ("row", ElementwiseBinary(), (row, (1, 1)), anything),
        ("rows-of-two", Softmax(), ((LONG, 2),), anything),
        ("row", ArgMinMax(ArgMinMaxFunction.MAX, 1), (row,), _one_peak),
        ("column", ArgMinMax(ArgMinMaxFunction.MAX, 0), (column,), _one_peak),
        ("row", TopkV2(2), (row,), _one_peak),
        ("row", Reduce(ReduceOperation.MAX, (1,)), (row,), _one_peak),
        ("column", Reduce(ReduceOperation.MAX, (0,)), (column,), _one_peak),
        ("row", ReverseV2((1,)), (row,), anything),
        ("two-rows", Transpose((1, 0)), ((2, LONG),), anything),
        ("behind", Slice((65_530, 0), (13, 2)), ((LONG, 2),), anything),
        ("behind", StridedSlice((65_530,), (LONG,), (3,)), ((LONG,),), anything),
        ("behind", Concat(0), (column, (3, 1)), anything),
        ("behind", Pad(((0, 0), (LONG - 3, 2))), ((1, 4),), anything),
        ("row", Tile((1, 9_000)), ((1, 8),), anything),
        ("two", Splitter(2, 0), ((2 * LONG,),), anything),
        ("column", Reshape((1, -1)), (column,), anything),
        ("wide", Resize((1, 2 * LONG)), ((1, 1, LONG, 1),), anything),
        ("wide", Pooling2d(PoolingAlgorithm.MAX, (1, 3), (1, 2)), ((1, 1, LONG, 1),), anything),
    )
    for label, operation, shapes, values in rows:
        yield CaseTemplate(f"long-{label}", operation, shapes, _bytes, (values,))
    yield CaseTemplate(
        "long",
        Gather(0),
        ((LONG, 2), (5,)),
        _bytes,
        (anything, _far_indices),
        infos=indexed,
    )
    yield line(
        "long-wide",
        Convolution2d(padding=_SAME),
        ((1, 1, LONG, 1), (2, 1, 3, 1), None),
        _bytes_and_weights,
    )
    yield line(
        "long-wide",
        DepthwiseConvolution2d(padding=_SAME),
        ((1, 1, LONG, 1), (1, 1, 3, 1), None),
        _bytes_and_weights,
    )
    dense = FullyConnected()
    yield line("long-batch", dense, ((LONG, 2), (3, 2), (3,)), _bytes_and_weights)
    yield line("long-units", dense, ((1, 2), (LONG, 2), (LONG,)), _bytes_and_weights)
    yield line("long-rows", BatchMatMul(), ((1, LONG, 2), (1, 2, 3)), _FLOAT, constants=())


def _caches() -> Iterator[CaseTemplate]:
    """Tensors larger than usual caches; errors show in the last elements."""
    for label, size in (("256-kib", _WIDE_CACHE), ("2-mib", _WIDEST_CACHE)):
        absolute = ElementwiseUnary(UnaryOperation.ABS)
        yield CaseTemplate(label, ElementwiseBinary(), ((size,), (size,)), _FLOAT, (anything,))
        yield CaseTemplate(label, absolute, ((size,),), _FLOAT, (anything,))
    many = ((_MANY_ELEMENTS,), (1,))
    yield CaseTemplate("2-20-elements", ElementwiseBinary(), many, _FLOAT, (anything,))
    relu = Activation(ActivationFunction.RELU)
    yield CaseTemplate("2-20-elements", relu, many[:1], _FLOAT, (anything,))
    yield CaseTemplate("2-20-elements", Concat(0), many, _FLOAT, (anything,))
    rows = ((_MANY_ELEMENTS // 7, 8),)
    yield CaseTemplate("2-20-elements", Transpose((1, 0)), rows, _FLOAT, (anything,))
    yield CaseTemplate("2-20-elements", Softmax(), rows, _FLOAT, (anything,))
    yield CaseTemplate("2-mib", Transpose((1, 0)), ((731, 729),), _FLOAT, (anything,))
    yield CaseTemplate("2-mib", Concat(1), ((3, 90_001), (3, 90_003)), _FLOAT, (anything,))
    largest = Pooling2d(PoolingAlgorithm.MAX, (2, 2), (2, 2))
    yield CaseTemplate("2-mib", largest, ((2, 129, 131, 17),), _FLOAT, (anything,))
    for label, types in _WEIGHTED.items():
        yield line(f"256-kib-{label}", FullyConnected(), ((3, 769), (513, 769), (513,)), types)
    shapes = ((2, 1537), (401, 1537), (401,))
    yield line("2-mib", FullyConnected(), shapes, _FLOAT)


def _tiles() -> Iterator[CaseTemplate]:
    """More than one tile in each dimension, in each of several images."""
    image, large = (3, 35, 33, 19), (3, 67, 65, 19)
    for label, types in _WEIGHTED.items():
        rows: tuple[tuple[Operation, tuple[int, ...], tuple[int, ...]], ...] = (
            (Convolution2d(padding=_SAME), image, (37, 3, 3, 19)),
            (Convolution2d((2, 2), padding=_SAME), image, (21, 3, 3, 19)),
            (Convolution2d(), (3, 19, 17, 67), (70, 1, 1, 67)),
            (Convolution2d(padding=_SAME), large, (5, 3, 3, 19)),
            (DepthwiseConvolution2d(padding=_SAME), large, (1, 3, 3, 19)),
            (DepthwiseConvolution2d(padding=_SAME), (3, 35, 33, 37), (1, 3, 3, 37)),
            (TransposeConvolution2d((2, 2), padding=_SAME), (3, 9, 11, 19), (21, 3, 3, 19)),
        )
        for number, (operation, shape, weights) in enumerate(rows):
            units = weights[-1] if isinstance(operation, DepthwiseConvolution2d) else weights[0]
            shapes = shape, weights, (units,)
            values = eighths, eighths, bias_elements
            yield line(f"tiles-{number}-{label}", operation, shapes, types, values=values)
        dense = (67, 131), (133, 131), (133,)
        yield line(f"tiles-{label}", FullyConnected(), dense, types)
    for label, types in _TYPES.items():
        batches = ((3, 67, 70), (3, 70, 69))
        yield line(f"tiles-{label}", BatchMatMul(), batches, types, constants=())
        average = Pooling2d(PoolingAlgorithm.AVERAGE, (3, 3), (2, 2), _SAME)
        yield CaseTemplate(f"tiles-{label}", average, (image,), types, (anything,))
        yield CaseTemplate(f"large-tiles-{label}", average, (large,), types, (anything,))
        total = Reduce(ReduceOperation.SUM, (1, 2))
        output = Scale(1.0)
        yield CaseTemplate(f"tiles-{label}", total, (image,), types, (anything,), output=output)


_ODD = (1, 3, 5, 7, 11, 15, 17, 31, 33)
"""Channels of which 16 rows begin at every alignment."""


def _channels() -> Iterator[CaseTemplate]:
    """Odd channels; other tests have those that fill registers."""
    for label, types in _WEIGHTED.items():
        for channels in _ODD:
            name = f"channels-{channels}-{label}"
            image = (2, 5, 4, channels)
            units = channels + 2
            for kernel in (1, 3):
                yield line(
                    f"{name}-{kernel}",
                    Convolution2d(padding=_SAME),
                    (image, (units, kernel, kernel, channels), (units,)),
                    types,
                )
            weights = (1, 3, 3, channels)
            deep = DepthwiseConvolution2d(padding=_SAME)
            yield line(name, deep, (image, weights, (channels,)), types)
            dense = ((17, channels), (units, channels), (units,))
            yield line(name, FullyConnected(), dense, types)
    for label, types in _TYPES.items():
        for channels, (kind, operation) in itertools.product(_ODD[:-2], _ROWS.items()):
            shape = (2, 4, 4, channels)
            name = f"channels-{channels}-{kind}-{label}"
            output = Scale(1 / 256, -1.0) if isinstance(operation, Softmax) else None
            yield CaseTemplate(name, operation, (shape,), types, (anything,), output=output)


_ROWS: dict[str, Operation] = {
    "rows": Softmax(),
    "largest": Pooling2d(PoolingAlgorithm.MAX, (2, 2), (2, 2)),
    "average": Pooling2d(PoolingAlgorithm.AVERAGE, (2, 2), (1, 1)),
}


def _long_rows() -> Iterator[CaseTemplate]:
    """Rows longer than a work group of a GPU, in floats: what is found or added up is anywhere."""
    shape, types = ((3, 2_311),), _FLOAT
    for largest in (True, False):
        for k in (3, 150):
            name = f"long-rows-{k}-{'largest' if largest else 'smallest'}"
            yield CaseTemplate(name, TopkV2(k, largest=largest), shape, types, (distinct,))
    for function in ArgMinMaxFunction:
        name = f"long-rows-{function.name.lower()}"
        yield CaseTemplate(name, ArgMinMax(function, 1), shape, types, (distinct,))
    for operation in (
        ReduceOperation.SUM,
        ReduceOperation.MEAN,
        ReduceOperation.MAX,
        ReduceOperation.MIN,
    ):
        name = operation.name.lower()
        rows, columns = Reduce(operation, (1,)), Reduce(operation, (0,))
        yield CaseTemplate(f"long-rows-{name}", rows, shape, types, (grid,))
        yield CaseTemplate(f"long-columns-{name}", columns, ((2_311, 3),), types, (grid,))
    others: tuple[Operation, ...] = (Softmax(), LogSoftmax(), L2Normalization(), Cumulate(axis=1))
    for other in others:
        yield CaseTemplate("long-rows", other, shape, types, (grid,))


def _odd_rows_of_bytes() -> Iterator[CaseTemplate]:
    """Rows of 13 elements of each width that stay together: what remains of whole words counts."""
    image, matrix = (2, 4, 6, 13), (2, 3, 2, 13)
    moves: tuple[tuple[Operation, tuple[tuple[int, ...], ...]], ...] = (
        (Transpose((0, 2, 1, 3)), (matrix,)),
        (Transpose((2, 0, 1, 3)), (matrix,)),
        (Concat(1), (matrix, matrix)),
        (Concat(3), (matrix, matrix)),
        (Splitter(2, 2), (matrix,)),
        (Slice((0, 1, 0, 0), (2, 2, 2, 13)), (matrix,)),
        (StridedSlice((0, 0, 1, 0), (2, 3, 2, 13), (1, 2, 1, 1)), (matrix,)),
        (Pad(((0, 0), (1, 1), (0, 1), (0, 0))), (matrix,)),
        (Tile((1, 2, 2, 1)), (matrix,)),
        (ReverseV2((1,)), (matrix,)),
        (Stack(2), (matrix, matrix)),
        (SpaceToDepth(2), (image,)),
        (SpaceToBatchNd((2, 2), ((0, 0), (0, 0))), (image,)),
        (Resize((8, 3)), (image,)),
    )
    widths = of(DataType.QASYMM_S8, DataType.BOOLEAN, DataType.FLOAT16)
    for number, (operation, shapes) in enumerate(moves):
        yield CaseTemplate(f"odd-rows-{number}", operation, shapes, widths, (distinct,))
    yield CaseTemplate(
        "odd-rows",
        Gather(1),
        ((2, 5, 13), (4,)),
        widths,
        (distinct, below(5)),
        infos=indexed,
    )
