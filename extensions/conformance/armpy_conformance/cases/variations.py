"""Cases made of other cases: many more elements, none, other constants."""

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
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    Quantize,
    Reduce,
    Reshape,
    Softmax,
    Transpose,
)
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.comparison.seeded_values import stored
from armpy_conformance.differential_run import is_value
from armpy_conformance.sampling.case_template import COMMON_TYPES

_FEW, _MANY = 3_000, 70_000
"""Least elements of the largest tensor, for costly operations and for others."""

_CHEAP = (
    *(Activation, Comparison, Concat, Dequantize, ElementwiseBinary, ElementwiseUnary),
    *(Quantize, Reshape, Softmax, Transpose),
)

_JITTER = 1 / 64
"""Floats are made larger by up to this share, so that every bit of them counts; not where they
are added up, as sums are to be exact in any order."""

_TYPES = tuple(data_type.name for data_type in COMMON_TYPES)


def variations(cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a case of many elements and of other constants for each kind of layer."""
    for make in (with_many_elements, with_other_constants):
        seen: set[tuple[object, ...]] = set()
        for case in cases:
            kind = _kind(case)
            is_common = case.data_type in _TYPES
            if not is_common or kind in seen or case.expected is not None:
                continue
            if variants := make(case):
                seen.add(kind)
                yield from variants


def _kind(case: Case) -> tuple[object, ...]:
    """Return the parts of a case that have a variation: operation, function, type."""
    operation = case.operation
    names = ("operation", "function", "algorithm", "method")
    return (type(operation), *(getattr(operation, name, None) for name in names), case.data_type)


def with_many_elements(case: Case) -> tuple[Case, ...]:
    """The same layer on many times as many elements; empty if its first dimension is fixed."""
    fed = [item for item in case.inputs if item is not None and not item.is_constant]
    if not all(info.is_fully_shaped for info in case.outputs):
        return ()
    firsts = {item.info.known_shape[:1] for item in fed}
    if len(firsts) != 1 or firsts <= {(), (0,)}:
        return ()
    largest = max(info.num_elements for info in (*(x.info for x in fed), *case.outputs))
    is_cheap = isinstance(case.operation, _CHEAP)
    wanted = _MANY if is_cheap else _FEW
    factor = -(-wanted // max(largest, 1))
    rng = np.random.default_rng(zlib.crc32(case.id.encode()))
    random = rng if is_cheap else None
    inputs = tuple(
        item if item is None or item.is_constant else _larger(item, factor, random)
        for item in case.inputs
    )
    infos = [None if item is None else item.info for item in inputs]
    declared = [info.with_shape(None) for info in case.outputs]
    try:
        outputs = case.operation.infer(infos, declared)
    except ArmpyError:
        return ()
    if any(not x.is_fully_shaped or x.num_elements > 2 * _MANY for x in outputs):
        return ()
    return (replace(case, id=f"{case.id}+many-elements", inputs=inputs, outputs=outputs),)


def without_elements(cases: Sequence[Case]) -> Iterator[Case]:
    """Each operation, in floats and in bytes, on a batch of nothing, as far as it takes that."""
    seen: set[tuple[object, ...]] = set()
    for case in cases:
        operation, is_common = case.operation, case.data_type in _TYPES
        algorithm = operation.attributes().get("algorithm")
        reduction = operation.operation if isinstance(operation, Reduce) else None
        kind = (type(operation), is_common and case.data_type, algorithm, reduction)
        if kind in seen or ((type(operation), None) in seen and not is_common):
            continue
        empty_case = with_no_elements(case)
        if empty_case is not None:
            seen |= {kind, (type(operation), None)}
            yield empty_case


def with_no_elements(case: Case) -> Case | None:
    """The same layer on inputs without a first row; None if it does not take such.

    Notes
    -----
    All that is given at run time has none if it had equally many rows, else those inputs of them
    among which are all indices: an empty tensor has no positions.
    """
    fed = {i: x for i, x in enumerate(case.inputs) if x is not None and not x.is_constant}
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, item in fed.items():
        groups.setdefault(item.info.known_shape[:1], []).append(index)
    places = {i for i, item in fed.items() if not is_value(item.info.data_type)}
    for emptied in groups.values():
        if len(groups) == 1 or places <= set(emptied):
            empty_case = _without_rows(case, emptied)
            if empty_case is not None:
                return empty_case
    return None


def _without_rows(case: Case, emptied: Sequence[int]) -> Case | None:
    """A case with some inputs without rows; None if the operation does not take them."""
    firsts = {item.info.known_shape[:1] for i in emptied if (item := case.inputs[i]) is not None}
    if len(firsts) != 1 or firsts <= {(), (0,)}:
        return None
    inputs = tuple(
        replace(
            item,
            info=item.info.with_shape((0, *item.info.known_shape[1:])),
            elements=item.data[:0].copy(),
        )
        if item is not None and i in emptied
        else item
        for i, item in enumerate(case.inputs)
    )
    infos = [None if item is None else item.info for item in inputs]
    try:
        outputs = case.operation.infer(infos, [info.with_shape(None) for info in case.outputs])
    except ArmpyError:
        return None
    name = f"{case.id}+no-elements"
    return case.changed(id=name, inputs=inputs, outputs=outputs)


def _larger(item: CaseInput, factor: int, rng: np.random.Generator | None) -> CaseInput:
    """An input with a first dimension many times as large, whose rows differ."""
    first, *rest = item.info.known_shape
    shape = (first * factor, *rest)
    flat = item.data.reshape(-1)
    period = flat[:-1] if flat.size > 1 else flat
    data = np.resize(period, shape)
    if rng is not None and item.info.data_type is DataType.FLOAT32:
        data = stored(data * rng.uniform(1, 1 + _JITTER, shape), item.info)
    return replace(item, info=item.info.with_shape(shape), elements=data)


def with_other_constants(case: Case) -> tuple[Case, ...]:
    """The same layer with constants, and with these in reverse order; empty if it can have none.

    Notes
    -----
    All cases run on one Runtime. A backend that keeps converted constants and finds them by
    shapes and types alone takes those of the other case.
    """
    variant = case
    if not any(item is not None and item.is_constant for item in case.inputs):
        constant = [None if i is None else replace(i, is_constant=True) for i in case.inputs[1:]]
        variant = replace(case, id=f"{case.id}+constants", inputs=(*case.inputs[:1], *constant))
    inputs = tuple(map(_with_other_elements, variant.inputs))
    if all(other is item for other, item in zip(inputs, variant.inputs, strict=True)):
        return ()
    other = replace(variant, id=f"{case.id}+other-constants", inputs=inputs)
    return (other,) if variant is case else (variant, other)


def _with_other_elements(item: CaseInput | None) -> CaseInput | None:
    """A constant in reverse order; anything else, places and sizes too, as it is."""
    if item is None or not item.is_constant or not is_value(item.info.data_type):
        return item
    data = item.data.reshape(-1)[::-1].reshape(item.data.shape)
    return item if np.array_equal(data, item.data) else replace(item, elements=data.copy())
