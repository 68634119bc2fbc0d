"""Criteria of how close to CpuRef random models have to be: tables by operation and type."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, OFF_BY_ONE, Tolerance, compare
from armpy.types import DataType
from armpy_nnapi.codes import OperationCode
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.description.model_description import Lifetime, Operand, Subgraph


@dataclass(frozen=True, slots=True)
class Criterion:
    """Largest errors of elements, of each one and on average."""

    tolerance: Tolerance  # of each element
    # Largest mean of the errors and of their squares. Errors of quantised elements count in steps;
    # those of floats relative to the expected element where that is above 1.
    bias: float = np.inf
    mean_square: float = np.inf


Criteria: TypeAlias = Mapping[DataType, Criterion]

_LEAST_COUNT = 10
"""Averages of fewer elements do not count."""

_LARGEST = MappingProxyType({DataType.FLOAT32: 1e3, DataType.FLOAT16: 1e2})
"""Larger expected floats are not compared: what leads to them says nothing of a backend."""

Row: TypeAlias = tuple[float, float, float, float]


def _criteria(float32: Row, float16: Row, quantized: tuple[float, float, float]) -> Criteria:
    """Criteria by type; rows are bias, mean square, absolute and, for floats, relative."""
    bias, mean_square, steps = quantized
    quantized_criterion = Criterion(Tolerance(steps), bias, mean_square)
    criteria = {
        kind: quantized_criterion if kind.is_quantized else Criterion(EXACT) for kind in DataType
    }
    criteria[DataType.SIGNED32] = Criterion(OFF_BY_ONE)
    for kind, row in ((DataType.FLOAT32, float32), (DataType.FLOAT16, float16)):
        criteria[kind] = Criterion(Tolerance(row[2], row[3]), row[0], row[1])
    return MappingProxyType(criteria)


STRICT = _criteria((1e-7, 1e-10, 1e-6, 1e-6), (1e-4, 1e-8, 1e-3, 1e-3), (0.1, 0.1, 1))
MEDIUM = _criteria((1e-6, 1e-8, 1e-5, 1e-5), (1e-3, 1e-5, 1e-2, 1e-2), (1.2, 1.2, 2))
RELAXED = _criteria((3e-5, 1e-6, 1e-3, 1e-3), (5e-3, 1e-3, 1, 1), (1.5, 1.5, 10))
CONVOLUTION = _criteria((4e-4, 1e-5, 2e-2, 2e-2), (5e-2, 1e-2, 1, 1), (1.5, 1.5, 10))
SMALL_GRAPH = _criteria((4e-4, 1e-5, 1e-2, 1e-2), (5e-2, 1e-2, 1, 1), (2, 2, 12))
LARGE_GRAPH = _criteria((1e-2, 1e-4, 0.1, 0.1), (0.1, 5e-2, 1, 1), (2, 2, 12))
"""NNAPI's own: what its tests with random graphs ask of drivers."""

_SMALL = 5
"""Most operations of a small graph."""

_C = OperationCode

_MOVEMENTS = frozenset(
    {
        _C.DEPTH_TO_SPACE,
        _C.SPACE_TO_DEPTH,
        _C.BATCH_TO_SPACE_ND,
        _C.SPACE_TO_BATCH_ND,
        _C.RESHAPE,
        _C.PAD,
        _C.PAD_V2,
        _C.TRANSPOSE,
        _C.SQUEEZE,
        _C.STRIDED_SLICE,
        _C.EMBEDDING_LOOKUP,
        _C.HASHTABLE_LOOKUP,
        _C.CHANNEL_SHUFFLE,
        _C.EXPAND_DIMS,
        _C.TILE,
        _C.GATHER,
        _C.SLICE,
        _C.SPLIT,
        _C.FILL,
        _C.RANK,
    }
)
"""Operations whose outputs are exactly as certain as their inputs."""

_CHOICES = frozenset(
    {
        _C.ARGMAX,
        _C.ARGMIN,
        _C.TOPK_V2,
        _C.FLOOR,
        _C.LSH_PROJECTION,
        _C.EQUAL,
        _C.NOT_EQUAL,
        _C.GREATER,
        _C.GREATER_EQUAL,
        _C.LESS,
        _C.LESS_EQUAL,
        _C.BOX_WITH_NMS_LIMIT,
        _C.GENERATE_PROPOSALS,
        _C.DETECTION_POSTPROCESSING,
        _C.HEATMAP_MAX_KEYPOINT,
        _C.RANDOM_MULTINOMIAL,
    }
)
"""Operations where a small error of an input can make any difference to an output."""

_STRICT = (
    _MOVEMENTS
    | {_C.ARGMAX, _C.ARGMIN, _C.TOPK_V2, _C.SELECT}
    | {_C.EQUAL, _C.NOT_EQUAL, _C.GREATER, _C.GREATER_EQUAL, _C.LESS, _C.LESS_EQUAL}
    | {_C.LOGICAL_AND, _C.LOGICAL_OR, _C.LOGICAL_NOT}
)

_MEDIUM = frozenset(
    {
        _C.ADD,
        _C.MUL,
        _C.SUB,
        _C.FLOOR,
        _C.RELU,
        _C.RELU1,
        _C.RELU6,
        _C.CONCATENATION,
        _C.DEQUANTIZE,
        _C.ABS,
        _C.NEG,
        _C.MAXIMUM,
        _C.MINIMUM,
        _C.PRELU,
        _C.QUANTIZE,
        _C.CAST,
        _C.ELU,
        _C.HARD_SWISH,
    }
)

_CONVOLUTIONS = frozenset(
    {_C.CONV_2D, _C.DEPTHWISE_CONV_2D, _C.GROUPED_CONV_2D, _C.TRANSPOSE_CONV_2D}
)

_FREE_OUTPUTS: Mapping[int, int] = MappingProxyType({_C.LSTM: 0, _C.RANDOM_MULTINOMIAL: 0})
"""Outputs that hold what an implementation likes: a scratch buffer, and random samples."""


def criteria_of(example: Example) -> Criteria:
    """The criteria for an example, by type."""
    nodes = example.model.main.operations
    if len(nodes) > _SMALL:
        return LARGE_GRAPH
    code = nodes[0].type
    if len(nodes) > 1 or code in (_C.IF, _C.WHILE):
        return SMALL_GRAPH
    for codes, criteria in (
        (_STRICT, STRICT),
        (_MEDIUM, MEDIUM),
        (_CONVOLUTIONS, CONVOLUTION),
    ):
        if code in codes:
            return criteria
    return RELAXED


def compare_exactly(example: Example, position: int, expected: Array, actual: Array) -> str:
    """Describe the fault in an output that has to be equal; empty if there is none."""
    difference = compare(expected, actual, example.output_operand(position).info, EXACT)
    return "" if difference is None else str(difference)


def compare_closely(example: Example, position: int, expected: Array, actual: Array) -> str:
    """Describe the fault in an output of another implementation; empty if there is none."""
    operand = example.output_operand(position)
    index = example.model.main.outputs[position]
    if index not in foreseeable(example.model.main):
        return ""
    criterion = criteria_of(example)[operand.data_type]
    counts = _counts(expected, operand)
    wanted, actual_counted = expected[counts], actual[counts]
    difference = compare(wanted, actual_counted, operand.info, criterion.tolerance)
    if difference is not None:
        return str(difference)
    return "" if wanted.size < _LEAST_COUNT else _averages(wanted, actual_counted, criterion)


def _counts(expected: Array, operand: Operand) -> npt.NDArray[np.bool_]:
    """Mask of the elements that are compared."""
    largest = _LARGEST.get(operand.data_type)
    if largest is None:
        return np.ones(expected.shape, np.bool_)
    return np.isfinite(expected) & (np.abs(expected) <= largest)


def _averages(expected: Array, actual: Array, criterion: Criterion) -> str:
    """Describe the fault in the mean error and its square; empty if there is none."""
    wide = expected.astype(np.float64)
    errors = actual.astype(np.float64) - wide
    if expected.dtype.kind == "f":
        errors /= np.maximum(np.abs(wide), 1)
    for name, average, limit in (
        ("mean error", abs(float(errors.mean())), criterion.bias),
        ("mean squared error", float((errors**2).mean()), criterion.mean_square),
    ):
        if average > limit:
            return f"the {name} is {average:.4g}. Expected at most {limit:g}"
    return ""


def foreseeable(graph: Subgraph) -> frozenset[int]:
    """Operands of a graph that an implementation with small errors comes close to.

    Notes
    -----
    An operation that chooses, of inputs that are not certain to the last bit, can give
    anything; so can all that follows it.
    """
    written = (Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT)
    certain = {i for i, o in enumerate(graph.operands) if o.lifetime not in written}
    close = set(certain)
    for node in graph.operations:
        is_certain = certain.issuperset(node.inputs)
        if not close.issuperset(node.inputs) or (node.type in _CHOICES and not is_certain):
            continue
        free = _FREE_OUTPUTS.get(node.type)
        outputs = [index for i, index in enumerate(node.outputs) if i != free]
        close.update(outputs)
        if is_certain and node.type in _MOVEMENTS:
            certain.update(outputs)
    return frozenset(close)
