"""Operations that convert elements to another type."""

from __future__ import annotations

from armpy.ops.operation import require
from armpy.ops.quantizing import Cast, Dequantize, Quantize
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, TypeRow, forms, rows

_C = OperandCode

_CAST_NUMBERS = (
    _C.TENSOR_FLOAT32,
    _C.TENSOR_FLOAT16,
    _C.TENSOR_INT32,
    _C.TENSOR_QUANT8_ASYMM,
)
_CAST_TO_SAME = (
    _C.TENSOR_BOOL8,
    _C.TENSOR_QUANT16_ASYMM,
    _C.TENSOR_QUANT16_SYMM,
    _C.TENSOR_QUANT8_ASYMM_SIGNED,
    _C.TENSOR_QUANT8_SYMM,
)


def _cast_rows() -> tuple[TypeRow, ...]:
    """Any pair of numbers; the other types to themselves only."""
    pairs = [(source, target, 29) for source in _CAST_NUMBERS for target in _CAST_NUMBERS]
    return rows("S T", *pairs, *((kind, kind, 30) for kind in _CAST_TO_SAME))


def _check_cast(arguments: Arguments) -> int:
    """Shapes that are both known must be equal."""
    source, target = arguments["input"].dimensions, arguments["output"].dimensions
    are_known = source and target and 0 not in (*source, *target)
    require(
        not are_known or source == target,
        "input and output have different shapes",
        expected=str(source),
        actual=target,
    )
    return arguments.match.feature_level


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.CAST,
        "The stored number of each element in another type.",
        forms((Argument("input", "S"),), outputs=(Argument("output", "T"),)),
        _cast_rows(),
        lambda lower: lower.add(Cast(), lower["input"]),
        check=_check_cast,
    ),
    OperationDefinition(
        OperationCode.QUANTIZE,
        "Each real number in steps of the output's scale from its zero point.",
        forms((Argument("input", "T"),), outputs=(Argument("output", "Q"),)),
        rows(
            "T Q",
            (_C.TENSOR_FLOAT32, _C.TENSOR_QUANT8_ASYMM, 29),
            (_C.TENSOR_FLOAT16, _C.TENSOR_QUANT8_ASYMM, 29),
            (_C.TENSOR_FLOAT32, _C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
            (_C.TENSOR_FLOAT16, _C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        lambda lower: lower.add(Quantize(), lower["input"]),
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.DEQUANTIZE,
        "The real number that each element stands for.",
        forms((Argument("input", "Q", ranks=(1, 2, 3, 4)),), outputs=(Argument("output", "T"),)),
        # The signed type is accepted before its own feature level.
        rows(
            "Q T",
            (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_FLOAT32, 27),
            (_C.TENSOR_QUANT8_ASYMM, _C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_SYMM, _C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_QUANT8_SYMM, _C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_SYMM_PER_CHANNEL, _C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_QUANT8_SYMM_PER_CHANNEL, _C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.TENSOR_FLOAT16, 29),
        ),
        lambda lower: lower.add(Dequantize(), lower["input"]),
        allows_zero_sized=True,
    ),
)
