"""Expected outputs that come from no backend, not even from CpuRef.

Cases of floats, and of what only moves elements, take theirs from the operations' descriptions,
computed in float64; so do copies of quantised cases, which are rounded then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import (
    ActivationFunction,
    Comparison,
    L2Normalization,
    LogSoftmax,
    Operation,
    ReduceOperation,
    UnaryOperation,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.comparison.real_numbers import real_numbers
from armpy_conformance.definitions.functions import (
    FUNCTIONS,
    MOVEMENTS,
    TABLES,
    Definition,
    Numbers,
)
from armpy_conformance.definitions.images import IMAGES
from armpy_conformance.definitions.places import PADDED, PLACES
from armpy_conformance.definitions.sequences import SEQUENCES
from armpy_conformance.definitions.volumes import VOLUMES

_FUNCTIONS = {**FUNCTIONS, **SEQUENCES, **VOLUMES, **IMAGES, **PADDED}
_MOVEMENTS = {**MOVEMENTS, **PLACES}
_REAL_TYPES = {DataType.FLOAT32, DataType.BOOLEAN}
_WITH_LENGTHS = _REAL_TYPES | {DataType.SIGNED32, DataType.SIGNED64}
_FIXED_POINT = (Comparison, LogSoftmax)
"""Operations whose rounded scales, or ranges, decide on more than the last step."""

_NEGLIGIBLE = 1e-6
"""Sums of squares of quantised elements are 0 or far above it."""

_STEPS = (UnaryOperation.CEIL, UnaryOperation.FLOOR, UnaryOperation.ROUND, ReduceOperation.PROD)
"""Functions where the last bit of a real number makes a large difference, or each factor."""

_TABLES = (
    *(UnaryOperation.EXP, UnaryOperation.LOG, UnaryOperation.RSQRT),
    *(ActivationFunction.TANH, ActivationFunction.SIGMOID, ActivationFunction.GELU),
)
"""Functions of 16-bit elements that are interpolated between entries of a table."""


def with_expected(case: Case) -> Case:
    """A case with the outputs that its operation's description says, where that is known here.

    Parameters
    ----------
    case : Case
        Of floats, or of an operation that moves elements; others are kept as they are, as
        those are whose outputs were worked out by hand.
    """
    if case.expected is not None or not has_definition(case.operation):
        return case
    kind, infos = type(case.operation), _infos(case)
    arrays = [None if item is None else item.data for item in case.inputs]
    quantizations = {info.quantization for info in infos if _is_moved(info)}
    if kind in _MOVEMENTS and len(quantizations) <= 1:
        return _defined(case, _MOVEMENTS[kind], arrays)
    types = {info.data_type for info in infos}
    if kind in _FUNCTIONS and types <= (_WITH_LENGTHS if kind in SEQUENCES else _REAL_TYPES):
        return _defined(case, _FUNCTIONS[kind], [_real(item) for item in case.inputs])
    return case


def has_real_definition(case: Case) -> bool:
    """Return whether `in_real_arithmetic` knows the outputs of a case.

    Its elements are quantised, its operation is known here, and is not defined by fixed-point
    arithmetic that can be further away from real numbers than the tolerance.
    """
    kind, infos = type(case.operation), _infos(case)
    first = infos[0].data_type
    function = _function(case.operation)
    if kind not in _FUNCTIONS or kind in _FIXED_POINT or not first.is_quantized:
        return False
    if not has_definition(case.operation):
        return False
    if getattr(case.operation, "rounds_down", False):
        return False
    if isinstance(case.operation, L2Normalization) and case.operation.epsilon > _NEGLIGIBLE:
        return False  # in fixed point there is none
    if function in _STEPS or (first.size_bytes == 2 and function in _TABLES):
        return False
    # A bias is an integer with a scale; other integers are not numbers to compute with.
    return all(info.quantization is not None for info in infos)


def in_real_arithmetic(case: Case) -> Case:
    """A case that has a definition in real numbers, with outputs that were computed with these."""
    return _defined(case, _FUNCTIONS[type(case.operation)], [_real(item) for item in case.inputs])


def _is_moved(info: TensorInfo) -> bool:
    """Return whether a tensor's elements are no indices."""
    integers = (DataType.SIGNED16, DataType.SIGNED32, DataType.SIGNED64)
    return info.quantization is not None or info.data_type not in integers


def answered(case: Case) -> Case:
    """A case with the outputs that its operation's description says, quantised or not."""
    return in_real_arithmetic(case) if has_real_definition(case) else with_expected(case)


def has_definition(operation: Operation) -> bool:
    """Return whether an operation's function is in its table; True without a function."""
    function = _function(operation)
    tables = [table for kind, (_, table) in TABLES.items() if isinstance(function, kind)]
    return all(function in table for table in tables)


def _function(operation: Operation) -> object:
    """The function that an operation applies to elements; None if its class says it all."""
    return getattr(operation, "operation", getattr(operation, "function", None))


def _defined(case: Case, definition: Definition, inputs: Sequence[Numbers | None]) -> Case:
    """The case with outputs that a definition gives."""
    with np.errstate(all="ignore"):
        outputs = definition(case.operation, inputs, case.outputs)
        expected = tuple(
            _stored(np.asarray(array), info, case.operation)
            for array, info in zip(outputs, case.outputs, strict=True)
        )
    return replace(case, expected=expected)


def _infos(case: Case) -> list[TensorInfo]:
    """Infos of inputs and outputs."""
    return [*(item.info for item in case.inputs if item is not None), *case.outputs]


def _real(item: CaseInput | None) -> Numbers | None:
    """Real numbers that an input stands for; truth values stay as they are."""
    if item is None or item.data.dtype == np.bool_:
        return None if item is None else item.data
    if item.info.quantization is None:
        return item.data.astype(np.float64)
    return real_numbers(item.data, item.info)


def _stored(values: Numbers, info: TensorInfo, operation: Operation) -> Numbers:
    """Elements of an output as it stores them, rounded half away from zero and saturated."""
    if info.data_type.is_quantized and values.dtype == np.float64:
        steps = values / info.scale
        half = 0.0 if _function(operation) is UnaryOperation.SQRT else 0.5  # roots are cut off
        steps = np.sign(steps) * np.floor(np.abs(steps) + half) + info.zero_point
        values = np.clip(np.nan_to_num(steps, nan=info.zero_point), *info.data_type.integer_range)
    return values.astype(info.data_type.dtype).reshape(info.known_shape)
