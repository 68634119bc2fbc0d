"""Operations whose result is true or false: comparisons, and logic of two tensors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from armpy.graph import Value
from armpy.ops.elementwise import (
    Comparison,
    ComparisonOperation,
    LogicalBinary,
    LogicalBinaryOperation,
)
from armpy.ops.quantizing import Dequantize
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext

_C, _O = OperandCode, OperationCode

_FORMS = forms(
    (Argument("input0", "T"), Argument("input1", "T", "Broadcasts with input0.")),
    outputs=(Argument("output", _C.TENSOR_BOOL8),),
)

_COMPARED = rows(
    "T",
    (_C.TENSOR_FLOAT32, 29),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_INT32, 29),
    (_C.TENSOR_BOOL8, 29),
    (_C.TENSOR_QUANT8_ASYMM, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)

_COMPARISONS: Mapping[OperationCode, tuple[ComparisonOperation, str]] = MappingProxyType(
    {
        _O.EQUAL: (ComparisonOperation.EQUAL, "equals"),
        _O.GREATER: (ComparisonOperation.GREATER, "is above"),
        _O.GREATER_EQUAL: (ComparisonOperation.GREATER_OR_EQUAL, "is not below"),
        _O.LESS: (ComparisonOperation.LESS, "is below"),
        _O.LESS_EQUAL: (ComparisonOperation.LESS_OR_EQUAL, "is not above"),
        _O.NOT_EQUAL: (ComparisonOperation.NOT_EQUAL, "differs from"),
    }
)

_LOGIC: Mapping[OperationCode, tuple[LogicalBinaryOperation, str]] = MappingProxyType(
    {
        _O.LOGICAL_AND: (LogicalBinaryOperation.LOGICAL_AND, "Whether both elements are true."),
        _O.LOGICAL_OR: (LogicalBinaryOperation.LOGICAL_OR, "Whether either element is true."),
    }
)


def _lower_comparison(lower: LoweringContext, kind: ComparisonOperation) -> Value:
    """A comparison; quantised elements are compared as the float32 numbers they stand for."""
    sides = [lower["input0"], lower["input1"]]
    if sides[0].info.data_type.is_quantized:
        sides = [
            lower.add(Dequantize(), side, output=TensorInfo(side.info.shape, DataType.FLOAT32))
            for side in sides
        ]
    return lower.add(Comparison(kind), *sides)


def _comparison(code: OperationCode) -> OperationDefinition:
    kind, relation = _COMPARISONS[code]
    return OperationDefinition(
        code,
        f"Whether each element of input0 {relation} that of input1.",
        _FORMS,
        _COMPARED,
        lambda lower: _lower_comparison(lower, kind),
    )


def _logic(code: OperationCode) -> OperationDefinition:
    kind, summary = _LOGIC[code]
    return OperationDefinition(
        code,
        summary,
        _FORMS,
        rows("T", (_C.TENSOR_BOOL8, 29)),
        lambda lower: lower.add(LogicalBinary(kind), lower["input0"], lower["input1"]),
    )


DEFINITIONS: tuple[OperationDefinition, ...] = (
    *map(_comparison, _COMPARISONS),
    *map(_logic, _LOGIC),
)
