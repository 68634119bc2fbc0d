"""Activation functions, and functions of whole rows that are used like them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import (
    Activation,
    ActivationFunction,
    L2Normalization,
    LogSoftmax,
    Softmax,
)
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    UnaryOperation,
)
from armpy.ops.operation import require
from armpy.tensor import TensorInfo
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, TypeRow, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext

_C, _O = OperandCode, OperationCode
_F = ActivationFunction
_UP_TO_4 = (1, 2, 3, 4)
_OUTPUTS = (Argument("output", "T"),)
_FORMS = forms((Argument("input", "T", ranks=_UP_TO_4),), outputs=_OUTPUTS)

_UNSIGNED, _SIGNED = _C.TENSOR_QUANT8_ASYMM, _C.TENSOR_QUANT8_ASYMM_SIGNED


def _activation_rows(unsigned_level: int = 27) -> tuple[TypeRow, ...]:
    return rows(
        "T",
        (_C.TENSOR_FLOAT32, 27),
        (_C.TENSOR_FLOAT16, 29),
        (_UNSIGNED, unsigned_level),
        (_SIGNED, 30),
    )


_RECTIFIERS: Mapping[OperationCode, tuple[Activation, str]] = MappingProxyType(
    {
        _O.RELU: (Activation(_F.RELU), "Each element, 0 instead of negative ones."),
        _O.RELU1: (Activation(_F.BOUNDED_RELU, 1.0, -1.0), "Each element, clamped to [-1, 1]."),
        _O.RELU6: (Activation(_F.BOUNDED_RELU, 6.0, 0.0), "Each element, clamped to [0, 6]."),
    }
)


def _rectifier(code: OperationCode) -> OperationDefinition:
    """The definition of a clamp, which keeps the input's quantisation."""
    operation, summary = _RECTIFIERS[code]

    def lower_clamp(lower: LoweringContext) -> Value:
        # NNAPI clamps the stored elements, so their quantisation stays.
        info = lower["input"].info
        return lower.add(operation, lower["input"], output=info.with_shape(None))

    return OperationDefinition(
        code, summary, _FORMS, _activation_rows(), lower_clamp, allows_zero_sized=True
    )


def _lower_logistic(lower: LoweringContext) -> Value:
    # The kernel multiplies by scale * 2**27 in fixed point, which has to be above 1.
    _check_fine_scale(lower, 27)
    # The whole range of the type stands for 0 to 1.
    output = lower.fixed_output(1 / 256, -128 if lower.output_operand().type == _SIGNED else 0)
    return lower.add(Activation(_F.SIGMOID), lower["input"], output=output)


def _lower_tanh(lower: LoweringContext) -> Value:
    _check_fine_scale(lower, 27)
    output = lower.fixed_output(1 / 128, _zero_point_of_128ths(lower))
    return lower.add(Activation(_F.TANH, 1.0, 1.0), lower["input"], output=output)


def _zero_point_of_128ths(lower: LoweringContext) -> int:
    """The zero point of an output between -1 and 1."""
    # Real 0 is in the middle of either type.
    return 0 if lower.output_operand().type == _SIGNED else 128


def _check_fine_scale(lower: LoweringContext, bits: int, factor: float = 1.0) -> None:
    """Check that a quantised input's scale is above ``2**-bits``, fixed point's smallest step."""
    info = lower["input"].info
    if not info.data_type.is_quantized or not info.num_elements:
        return
    require(
        np.float32(info.scale) * np.float64(factor) > 2.0**-bits,
        "the input's scale is too small",
        expected=f"above {2.0**-bits / factor:g}",
        actual=f"{info.scale:g}",
    )


def _lower_elu(lower: LoweringContext) -> Value:
    """``max(0, x) + min(0, alpha (exp(x) - 1))``; core's ELU where alpha is not negative."""
    alpha = float(lower.number("alpha"))
    values, info = lower["input"], lower["input"].info
    if not alpha < 0:
        return lower.add(Activation(_F.ELU, a=alpha), values)
    # With alpha below 0 the exponential counts where x is above 0, which is not ELU.
    powers = lower.add(ElementwiseUnary(UnaryOperation.EXP), values, output=info)
    scaled = lower.add(Activation(_F.LINEAR, a=alpha, b=-alpha), powers, output=info)
    # The RELU of the negative removes elements that are not positive.
    negated = lower.add(ElementwiseUnary(UnaryOperation.NEG), scaled, output=info)
    dropped = lower.add(Activation(_F.RELU), negated, output=info)
    positive = lower.add(Activation(_F.RELU), values, output=info)
    return lower.add(ElementwiseBinary(BinaryOperation.SUB), positive, dropped)


def _lower_hard_swish(lower: LoweringContext) -> Value:
    source, target = lower["input"].info, lower.output_info()
    if source.data_type.is_quantized and source.num_elements:
        # The kernel shifts the quotient of the two to the right only.
        require(
            np.float32(source.scale) / 128 < target.scale,
            "the output's scale is too small for the input's",
            expected=f"above {source.scale / 128:g}",
            actual=f"{target.scale:g}",
        )
    return lower.add(Activation(_F.HARD_SWISH), lower["input"])


def _lower_softmax(lower: LoweringContext) -> Value:
    beta, axis = float(lower.number("beta")), lower.integer("axis")
    operand = lower.output_operand()
    if lower["input"].info.data_type.is_quantized and lower["input"].info.num_elements:
        zero_point = -128 if operand.type == _SIGNED else 0
        # The kernel has this one for its output, and fails with any other.
        require(
            np.float32(operand.scale) == 2**-8 and operand.zero_point == zero_point,
            "the output has the wrong quantisation",
            expected=f"scale {2**-8:g} and zero point {zero_point}",
            actual=f"{operand.scale:g} and {operand.zero_point}",
        )
        if beta > 0:
            # As for LOGISTIC, with one integer bit more.
            _check_fine_scale(lower, 26, beta)
    return lower.add(Softmax(beta, axis), lower["input"])


def _check_softmax(arguments: Arguments) -> int:
    """Ranks other than 2 and 4 came with feature level 29."""
    return _level_by_rank(arguments, (2, 4))


def _check_l2_normalization(arguments: Arguments) -> int:
    """Ranks other than 4 came with feature level 29."""
    return _level_by_rank(arguments, (4,))


def _level_by_rank(arguments: Arguments, first_ranks: tuple[int, ...]) -> int:
    """The match's feature level, 29 at least for ranks that the first one had not."""
    level = arguments.match.feature_level
    rank = len(arguments["input"].dimensions)
    return level if not rank or rank in first_ranks else max(level, 29)


def _lower_log_softmax(lower: LoweringContext) -> Value:
    operation = LogSoftmax(float(lower.number("beta")), lower.integer("axis"))
    return lower.add(operation, lower["input"])


def _lower_l2_normalization(lower: LoweringContext) -> Value:
    output: TensorInfo = lower.fixed_output(1 / 128, _zero_point_of_128ths(lower))
    return lower.add(L2Normalization(lower.integer("axis")), lower["input"], output=output)


_AXIS = Argument("axis", _C.INT32, "Negative counts from the last.", default=-1)
_SCALARS = {_C.TENSOR_FLOAT32: _C.FLOAT32, _C.TENSOR_FLOAT16: _C.FLOAT16}


def _float_rows(level: int) -> tuple[TypeRow, ...]:
    """Floating-point tensors T beside a number B of the same type."""
    return rows("T B", *((tensor, scalar, level) for tensor, scalar in _SCALARS.items()))


DEFINITIONS: tuple[OperationDefinition, ...] = (
    *map(_rectifier, _RECTIFIERS),
    OperationDefinition(
        _O.LOGISTIC,
        "1 / (1 + exp(-x)) of each element.",
        _FORMS,
        _activation_rows(),
        _lower_logistic,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        _O.TANH,
        "The hyperbolic tangent of each element.",
        _FORMS,
        _activation_rows(unsigned_level=29),
        _lower_tanh,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        _O.ELU,
        "max(0, x) + min(0, alpha (exp(x) - 1)) of each element.",
        forms((Argument("input", "T"), Argument("alpha", "B")), outputs=_OUTPUTS),
        _float_rows(30),
        _lower_elu,
    ),
    OperationDefinition(
        _O.HARD_SWISH,
        "x min(6, max(0, x + 3)) / 6 of each element.",
        forms((Argument("input", "T"),), outputs=_OUTPUTS),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 30),
            (_C.TENSOR_FLOAT16, 30),
            (_UNSIGNED, 30),
            (_SIGNED, 30),
        ),
        _lower_hard_swish,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        _O.SOFTMAX,
        "Exponentials along an axis, divided by their sum.",
        forms(
            (
                Argument("input", "T", ranks=_UP_TO_4),
                Argument("beta", "B", "Factor of the exponents, above 0."),
            ),
            (29, (_AXIS,)),
            outputs=_OUTPUTS,
        ),
        rows(
            "T B",
            (_C.TENSOR_FLOAT32, _C.FLOAT32, 27),
            (_C.TENSOR_FLOAT16, _C.FLOAT16, 29),
            (_UNSIGNED, _C.FLOAT32, 27),
            (_SIGNED, _C.FLOAT32, 30),
        ),
        _lower_softmax,
        check=_check_softmax,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        _O.LOG_SOFTMAX,
        "The logarithm of the softmax along an axis.",
        forms(
            (
                Argument("input", "T"),
                Argument("beta", "B", "Factor of the exponents, above 0."),
                Argument("axis", _C.INT32, "Negative counts from the last."),
            ),
            outputs=_OUTPUTS,
        ),
        _float_rows(29),
        _lower_log_softmax,
    ),
    OperationDefinition(
        _O.L2_NORMALIZATION,
        "Each element divided by the Euclidean norm along an axis.",
        forms((Argument("input", "T", ranks=_UP_TO_4),), (29, (_AXIS,)), outputs=_OUTPUTS),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 27),
            (_C.TENSOR_FLOAT16, 29),
            (_UNSIGNED, 29),
            (_SIGNED, 30),
        ),
        _lower_l2_normalization,
        check=_check_l2_normalization,
    ),
)
