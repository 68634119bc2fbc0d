"""Operations that add elements around a tensor."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.movement import Pad
from armpy.ops.operation import require
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import quantized_like

_C = OperandCode

PADDINGS = Argument(
    "paddings",
    _C.TENSOR_INT32,
    "Numbers of elements before and after, axis by axis.",
    decisive=True,
)
_INPUT = Argument("input", "T", ranks=(1, 2, 3, 4))
_OUTPUTS = (Argument("output", "T"),)


def check_zero_point(arguments: Arguments) -> int:
    """Before level 29, unsigned quantised tensors are padded only if their zero point is 0.

    Returns
    -------
    int
        The lowest feature level.
    """
    source = arguments["input"]
    level = arguments.match.feature_level
    if source.type == _C.TENSOR_QUANT8_ASYMM and source.zero_point != 0:
        return max(level, 29)
    return level


def padding_pairs(lower: LoweringContext) -> tuple[tuple[int, int], ...]:
    """The paddings: before and after, axis by axis.

    Raises
    ------
    LayerValidationError
        If they are not pairs.
    """
    pairs = lower.array("paddings")
    require(
        pairs.ndim == 2 and pairs.shape[1] == 2,
        "paddings has the wrong shape",
        expected="(n, 2)",
        actual=pairs.shape,
    )
    return tuple((int(before), int(after)) for before, after in pairs)


def _lower(lower: LoweringContext) -> Value:
    """PAD and PAD_V2; the padding is real 0, or a stored element."""
    inputs = [lower["input"]]
    if "value" in lower:
        inputs.append(_stored_value(lower))
    return lower.add(Pad(padding_pairs(lower)), *inputs, output=quantized_like(lower))


def _stored_value(lower: LoweringContext) -> Value:
    """The value to add as an element of the input's type."""
    info, value = lower["input"].info, lower.array("value").reshape(())
    if info.data_type.is_quantized:
        # Of the 32 bits, the element has the lowest 8.
        value = value.astype(np.uint8).view(info.data_type.dtype)
    return lower.constant(value, info.data_type, info.quantization)


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.PAD,
        "Add elements of real 0 around a tensor.",
        forms((_INPUT, PADDINGS), outputs=_OUTPUTS, feature_level=28),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 28),
            (_C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM, 28),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        _lower,
        check=check_zero_point,
    ),
    OperationDefinition(
        OperationCode.PAD_V2,
        "Add elements of a given value around a tensor.",
        forms(
            (_INPUT, PADDINGS, Argument("value", "value", "Stored, if the input is quantised.")),
            outputs=_OUTPUTS,
            feature_level=29,
        ),
        rows(
            "T value",
            (_C.TENSOR_FLOAT32, _C.FLOAT32, 29),
            (_C.TENSOR_FLOAT16, _C.FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM, _C.INT32, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.INT32, 30),
        ),
        _lower,
    ),
)
