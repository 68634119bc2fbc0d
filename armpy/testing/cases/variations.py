"""Cases made of other cases: many more elements, and numbers that are none."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy.errors import ArmpyError
from armpy.ops import (
    Activation,
    Comparison,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    Quantize,
    Reshape,
    Softmax,
    Transpose,
)
from armpy.ops.operation import Array
from armpy.testing.case import Case, CaseInput
from armpy.testing.sketch import COMMON_TYPES
from armpy.testing.values import stored
from armpy.types import DataType

_FEW, _MANY = 3_000, 70_000
"""Elements that the largest tensor has at least, of what is costly and of what is not."""

_CHEAP = (
    *(Activation, Comparison, Concat, Dequantize, ElementwiseBinary, ElementwiseUnary),
    *(Quantize, Reshape, Softmax, Transpose),
)

_JITTER = 1 / 64
"""Floats are made larger by up to this share, so that every bit of them counts; not where they
are added up, as sums are to be exact in any order."""

_TYPES = tuple(data_type.name for data_type in COMMON_TYPES)

_KEEPS_NAN = (
    Activation,
    ElementwiseBinary,
    ElementwiseUnary,
    Softmax,
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
)
"""Operations of which everybody agrees what becomes of what is not a number."""


def variations(cases: Sequence[Case]) -> Iterator[Case]:
    """One case of many elements and one with NaN and infinities for each kind of layer."""
    for make in (with_many_elements, with_not_a_number):
        seen: set[tuple[object, ...]] = set()
        for case in cases:
            kind = _kind(case)
            is_common = case.data_type in _TYPES
            if is_common and kind not in seen and case.expected is None:
                made = make(case)
                if made is not None:
                    seen.add(kind)
                    yield made


def _kind(case: Case) -> tuple[object, ...]:
    """What of a case has a variation of its own: operation, function, type."""
    operation = case.operation
    names = ("operation", "function", "algorithm", "method")
    return (type(operation), *(getattr(operation, name, None) for name in names), case.data_type)


def with_many_elements(case: Case) -> Case | None:
    """The same layer on many times as many elements; None if its first dimension is fixed."""
    given = [item for item in case.inputs if item is not None and not item.is_constant]
    if not all(info.is_fully_shaped for info in case.outputs):
        return None
    firsts = {item.info.known_shape[:1] for item in given}
    if len(firsts) != 1 or firsts <= {(), (0,)}:
        return None
    largest = max(info.num_elements for info in (*(x.info for x in given), *case.outputs))
    is_cheap = isinstance(case.operation, _CHEAP)
    wanted = _MANY if is_cheap else _FEW
    factor = -(-wanted // max(largest, 1))
    rng = np.random.default_rng(zlib.crc32(case.id.encode()))
    inputs = tuple(
        item
        if item is None or item.is_constant
        else _larger(item, factor, rng if is_cheap else None)
        for item in case.inputs
    )
    infos = [None if item is None else item.info for item in inputs]
    declared = [info.with_shape(None) for info in case.outputs]
    try:
        outputs = case.operation.infer(infos, declared)
    except ArmpyError:
        return None
    if any(not x.is_fully_shaped or x.num_elements > 2 * _MANY for x in outputs):
        return None
    return replace(case, id=f"{case.id}+many-elements", inputs=inputs, outputs=outputs)


def _larger(item: CaseInput, factor: int, rng: np.random.Generator | None) -> CaseInput:
    """An input with a first dimension many times as large, whose rows differ."""
    first, *rest = item.info.known_shape
    shape = (first * factor, *rest)
    flat = item.data.reshape(-1)
    period = flat[:-1] if flat.size > 1 else flat
    data = np.resize(period, shape)
    if rng is not None and item.info.data_type is DataType.FLOAT32:
        data = stored(data * rng.uniform(1, 1 + _JITTER, shape), item.info)
    return replace(item, info=item.info.with_shape(shape), data=data)


def with_not_a_number(case: Case) -> Case | None:
    """The same layer with NaN and both infinities in a float32 input; None if it has none."""
    if not isinstance(case.operation, _KEEPS_NAN):
        return None
    for index, item in enumerate(case.inputs):
        is_float = item is not None and item.info.data_type is DataType.FLOAT32
        if item is not None and is_float and not item.is_constant and item.data.size > 5:
            inputs = list(case.inputs)
            inputs[index] = replace(item, data=_planted(item.data))
            return replace(case, id=f"{case.id}+not-a-number", inputs=tuple(inputs))
    return None


def _planted(data: Array) -> Array:
    """A copy of an array with three elements that are no numbers."""
    copy = data.copy()
    copy.flat[[1, data.size // 2, data.size - 1]] = np.nan, np.inf, -np.inf
    return copy
