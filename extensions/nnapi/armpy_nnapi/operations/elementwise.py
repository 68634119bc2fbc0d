"""Operations that compute each element from one element of every input."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    Prelu,
    Select,
    UnaryOperation,
)
from armpy.ops.operation import require
from armpy.types import DataType
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, TypeRow, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import ANY_NUMBERS_FROM_29, fused_activation

_C, _O = OperandCode, OperationCode
_UP_TO_4 = (1, 2, 3, 4)
_OUTPUTS = (Argument("output", "T"),)
_LARGEST = float(np.finfo(np.float32).max)

_ARITHMETIC_FORMS = forms(
    (
        Argument("input0", "T", ranks=_UP_TO_4),
        Argument("input1", "T", "Broadcasts with input0.", ranks=_UP_TO_4),
        Argument("activation", _C.INT32, "FuseCode"),
    ),
    outputs=_OUTPUTS,
)


def _arithmetic_rows(float_level: int, *integers: tuple[int, ...]) -> tuple[TypeRow, ...]:
    return rows(
        "T",
        (_C.TENSOR_FLOAT32, float_level),
        (_C.TENSOR_FLOAT16, 29),
        *integers,
        (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        (_C.TENSOR_INT32, 30),
    )


_UNSIGNED = _C.TENSOR_QUANT8_ASYMM
_ARITHMETIC: Mapping[OperationCode, tuple[BinaryOperation, tuple[TypeRow, ...]]] = MappingProxyType(
    {
        _O.ADD: (BinaryOperation.ADD, _arithmetic_rows(27, (_UNSIGNED, 27))),
        _O.MUL: (BinaryOperation.MUL, _arithmetic_rows(27, (_UNSIGNED, 27))),
        _O.SUB: (BinaryOperation.SUB, _arithmetic_rows(28, (_UNSIGNED, 29))),
        # Signed quantised division passes validation and fails when it is to be executed.
        _O.DIV: (BinaryOperation.DIV, _arithmetic_rows(28)),
    }
)


def _lower_arithmetic(lower: LoweringContext, kind: BinaryOperation) -> Value:
    """ADD, SUB, MUL, DIV."""
    activation = fused_activation(lower)
    data_type = lower["input0"].info.data_type
    # Without elements nothing is computed, so nothing is checked either.
    if 0 not in (*lower.shape("input0"), *lower.shape("input1")):
        if data_type is DataType.SIGNED32:
            require(
                activation is FusedActivation.NONE,
                "integers have no activation",
                expected="NONE",
                actual=activation.name,
            )
        elif data_type.is_quantized:
            _check_rescaling(lower, kind)
    if data_type is DataType.SIGNED32 and kind is BinaryOperation.DIV:
        # NNAPI rounds integer quotients down, where C rounds towards 0.
        kind = BinaryOperation.FLOOR_DIV
    if data_type is DataType.FLOAT32 and kind is BinaryOperation.DIV:
        return _lower_float_division(lower, activation)
    return lower.add(ElementwiseBinary(kind, activation), lower["input0"], lower["input1"])


def _lower_float_division(lower: LoweringContext, activation: FusedActivation) -> Value:
    """DIV of float32: quotients by 0 become the largest numbers, as no activation lets more out."""
    low, high = activation.bounds
    bounds = Activation(
        ActivationFunction.BOUNDED_RELU,
        a=_LARGEST if high is None else high,
        b=-_LARGEST if low is None else low,
    )
    quotient = lower.add(ElementwiseBinary(BinaryOperation.DIV), lower["input0"], lower["input1"])
    return lower.add(bounds, quotient)


def _check_rescaling(lower: LoweringContext, kind: BinaryOperation) -> None:
    """Check that scales can be brought to the output's by a fixed-point factor below 1."""
    require(kind is not BinaryOperation.DIV, "quantised tensors cannot be divided")
    # In float32, as the reference computes it: at the border a wider product decides otherwise.
    scales = [np.float32(lower[name].info.scale) for name in ("input0", "input1")]
    is_product = kind is BinaryOperation.MUL
    # ADD and SUB work in 2**20ths of twice the larger scale.
    common = scales[0] * scales[1] if is_product else max(scales) * np.float32(2**-19)
    scale = lower.output_info().scale
    require(
        float(common) < scale,
        "the output's scale is too small for those of the inputs",
        expected=f"above {common:g}",
        actual=f"{scale:g}",
    )


def _check_product_scale(arguments: Arguments) -> int:
    """Before the signed type, the output's scale must be above the product of the inputs'."""
    first, second, output = arguments["input0"], arguments["input1"], arguments["output"]
    if first.type == _C.TENSOR_QUANT8_ASYMM:
        product = np.float32(first.scale) * np.float32(second.scale)
        require(
            np.float32(output.scale) > product,
            "the output's scale is too small",
            expected=f"above {product:g}, the product of the inputs' scales",
            actual=f"{output.scale:g}",
        )
    return arguments.match.feature_level


def _arithmetic(code: OperationCode) -> OperationDefinition:
    kind, type_rows = _ARITHMETIC[code]
    return OperationDefinition(
        code,
        f"{kind.name} of two tensors, element by element.",
        _ARITHMETIC_FORMS,
        type_rows,
        lambda lower: _lower_arithmetic(lower, kind),
        # The others' scales NNAPI looks at only when it executes them.
        check=_check_product_scale if code is _O.MUL else None,
        allows_zero_sized=True,
    )


_FLOATS = rows("T", (_C.TENSOR_FLOAT32, 29), (_C.TENSOR_FLOAT16, 29))

_UNARY: Mapping[OperationCode, tuple[UnaryOperation, str, tuple[TypeRow, ...]]] = MappingProxyType(
    {
        _O.ABS: (
            UnaryOperation.ABS,
            "The absolute value of each element.",
            (*_FLOATS, *rows("T", (_C.TENSOR_INT32, 30))),
        ),
        _O.EXP: (UnaryOperation.EXP, "The exponential of each element.", _FLOATS),
        _O.LOG: (UnaryOperation.LOG, "The natural logarithm of each element.", _FLOATS),
        _O.LOGICAL_NOT: (
            UnaryOperation.LOGICAL_NOT,
            "Whether each element is false.",
            rows("T", (_C.TENSOR_BOOL8, 29)),
        ),
        _O.NEG: (
            UnaryOperation.NEG,
            "Each element with the other sign.",
            (*_FLOATS, *rows("T", (_C.TENSOR_INT32, 29))),
        ),
        _O.RSQRT: (
            UnaryOperation.RSQRT,
            "The reciprocal of each element's square root.",
            _FLOATS,
        ),
        _O.SIN: (UnaryOperation.SIN, "The sine of each element.", _FLOATS),
        _O.SQRT: (UnaryOperation.SQRT, "The square root of each element.", _FLOATS),
    }
)

_UNARY_FORMS = forms((Argument("input", "T"),), outputs=_OUTPUTS)


def _unary(code: OperationCode) -> OperationDefinition:
    """The definition of a function of one tensor of any rank."""
    kind, summary, type_rows = _UNARY[code]
    return OperationDefinition(
        code,
        summary,
        _UNARY_FORMS,
        type_rows,
        lambda lower: lower.add(ElementwiseUnary(kind), lower["input"]),
    )


_PAIR_FORMS = forms(
    (Argument("input0", "T"), Argument("input1", "T", "Broadcasts with input0.")),
    outputs=_OUTPUTS,
)


def _pair(
    code: OperationCode, kind: BinaryOperation, summary: str, type_rows: tuple[TypeRow, ...]
) -> OperationDefinition:
    """The definition of a function of two tensors that has no activation."""
    return OperationDefinition(
        code,
        summary,
        _PAIR_FORMS,
        type_rows,
        lambda lower: lower.add(ElementwiseBinary(kind), lower["input0"], lower["input1"]),
    )


def _lower_select(lower: LoweringContext) -> Value:
    """SELECT, which does not broadcast."""
    names = ("condition", "input0", "input1")
    shapes = [lower.shape(name) for name in names]
    require(
        shapes[0] == shapes[1] == shapes[2],
        "condition and inputs have different shapes",
        expected=f"the condition's {shapes[0]} for all",
        actual=f"{shapes[1]} and {shapes[2]}",
    )
    return lower.add(Select(), *(lower[name] for name in names))


DEFINITIONS: tuple[OperationDefinition, ...] = (
    *map(_arithmetic, _ARITHMETIC),
    *map(_unary, _UNARY),
    OperationDefinition(
        _O.FLOOR,
        "Each element rounded down.",
        forms((Argument("input", "T", ranks=_UP_TO_4),), outputs=_OUTPUTS),
        rows("T", (_C.TENSOR_FLOAT32, 27), (_C.TENSOR_FLOAT16, 29)),
        lambda lower: lower.add(ElementwiseUnary(UnaryOperation.FLOOR), lower["input"]),
    ),
    _pair(
        _O.MAXIMUM,
        BinaryOperation.MAXIMUM,
        "The larger one of two elements.",
        ANY_NUMBERS_FROM_29,
    ),
    _pair(
        _O.MINIMUM,
        BinaryOperation.MINIMUM,
        "The smaller one of two elements.",
        ANY_NUMBERS_FROM_29,
    ),
    _pair(_O.POW, BinaryOperation.POWER, "input0 to the power of input1.", _FLOATS),
    OperationDefinition(
        _O.PRELU,
        "Each element that is not negative, others times an element of alpha.",
        forms(
            (Argument("input", "T"), Argument("alpha", "T", "Broadcasts with input.")),
            outputs=_OUTPUTS,
        ),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        lambda lower: lower.add(Prelu(), lower["input"], lower["alpha"]),
    ),
    OperationDefinition(
        _O.SELECT,
        "Each element from input0 where the condition is true, else from input1.",
        forms(
            (
                Argument("condition", _C.TENSOR_BOOL8),
                Argument("input0", "T", "Of the condition's shape."),
                Argument("input1", "T", "Of the condition's shape."),
            ),
            outputs=_OUTPUTS,
        ),
        # The signed type is accepted before its own feature level.
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 29),
            (_C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_INT32, 29),
            (_C.TENSOR_QUANT8_ASYMM, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 29),
        ),
        _lower_select,
    ),
)
