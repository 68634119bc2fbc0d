"""Normalisations over neighbours and over images."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.normalization import InstanceNormalization, Normalization
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout

_C = OperandCode


def _check_rank(arguments: Arguments) -> int:
    """Ranks other than 4, and unknown ones, are of level 29."""
    level = arguments.match.feature_level
    return level if len(arguments["input"].dimensions) == 4 else max(level, 29)


def _lower_local_response(lower: LoweringContext) -> Value:
    operation = Normalization(
        radius=lower.integer("radius"),
        # For the sum as it is: NNAPI does not divide it by the window's size, unlike ONNX.
        alpha=float(lower.number("alpha")),
        beta=float(lower.number("beta")),
        k=float(lower.number("bias")),
        axes=(lower.integer("axis"),),
    )
    return lower.add(operation, lower["input"])


def _lower_instance(lower: LoweringContext) -> Value:
    operation = InstanceNormalization(
        gamma=float(lower.number("gamma")),
        beta=float(lower.number("beta")),
        eps=float(lower.number("epsilon")),
        data_layout=data_layout(lower),
    )
    return lower.add(operation, lower["input"])


_FLOAT32 = (_C.TENSOR_FLOAT32, _C.FLOAT32)
_FLOAT16 = (_C.TENSOR_FLOAT16, _C.FLOAT16)

DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.LOCAL_RESPONSE_NORMALIZATION,
        "Elements divided by a power of the sum of squares of their neighbours.",
        forms(
            (
                Argument("input", "T", ranks=(1, 2, 3, 4)),
                Argument("radius", _C.INT32, "How far neighbours are away at most."),
                Argument("bias", "S", "The addend of the sum."),
                Argument("alpha", "S", "Factor of the sum."),
                Argument("beta", "S", "Exponent."),
            ),
            (29, (Argument("axis", _C.INT32, "Along which neighbours lie.", default=-1),)),
            outputs=(Argument("output", "T"),),
        ),
        rows("T S", (*_FLOAT32, 27), (*_FLOAT16, 29)),
        _lower_local_response,
        check=_check_rank,
    ),
    OperationDefinition(
        OperationCode.INSTANCE_NORMALIZATION,
        "Each channel of each image brought to one mean and variance.",
        forms(
            (
                Argument("input", "T", ranks=(4,)),
                Argument("gamma", "S", "Factor of the normalised elements."),
                Argument("beta", "S", "Their addend."),
                Argument("epsilon", "S", "The addend of the variance."),
                Argument("nchw", _C.BOOL),
            ),
            outputs=(Argument("output", "T"),),
        ),
        rows("T S", (*_FLOAT32, 29), (*_FLOAT16, 29)),
        _lower_instance,
    ),
)
