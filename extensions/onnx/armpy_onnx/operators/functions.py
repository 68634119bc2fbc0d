"""Operators that are a function of each element."""

from __future__ import annotations

import math

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.types import DataType
from armpy_onnx.blocks import Operand, binary, compared, selected, unary
from armpy_onnx.node import Node, Operator, OperatorTable

_SELU = 1.67326319217681884765625, 1.05070102214813232421875
"""Constants of SELU where it is not linear: the limit, and the factor of everything."""


def _unary(operation: UnaryOperation) -> Operator:
    return Operator(lambda node: unary(node, operation, node.value(0)))


def _activation(
    function: ActivationFunction, a: float = 0.0, b: float = 0.0, attribute: str = ""
) -> Operator:
    """Operator that is one activation function; an attribute may say its parameter `a`."""

    def convert(node: Node) -> Value:
        first = node.real(attribute, a) if attribute else a
        return _apply(node, node.value(0), function, first, b)

    return Operator(convert)


def _apply(
    node: Node, value: Value, function: ActivationFunction, a: float = 0.0, b: float = 0.0
) -> Value:
    return node.layer(Activation(function, a, b), value)


def _relu(node: Node) -> Value:
    """Return the elements above 0; integers are compared."""
    value = node.value(0)
    if value.info.data_type.is_float:
        return _apply(node, value, ActivationFunction.RELU)
    return binary(node, BinaryOperation.MAXIMUM, value, 0)


def _clip(node: Node) -> Value:
    """Elements between two limits, which are attributes before operator set 11."""
    value = node.value(0)
    if node.version < 11:
        low, high = (_limit(node, name) for name in ("min", "max"))
    else:
        low, high = node.input(1), node.input(2)
    lowest, highest = _number(low, -math.inf), _number(high, math.inf)
    if value.info.data_type.is_float and lowest <= highest:
        return _clamp(node, value, lowest, highest)
    if low is not None:
        value = binary(node, BinaryOperation.MAXIMUM, value, low)
    if high is not None:
        value = binary(node, BinaryOperation.MINIMUM, value, high)
    return value


def _clamp(node: Node, value: Value, lowest: float, highest: float) -> Value:
    """Floats between two numbers."""
    if (lowest, highest) == (-math.inf, math.inf):
        return value
    if (lowest, highest) == (0, math.inf):
        return _apply(node, value, ActivationFunction.RELU)
    return _apply(node, value, ActivationFunction.BOUNDED_RELU, highest, lowest)


def _limit(node: Node, name: str) -> Value | None:
    is_there = node.attribute(name) is not None
    return node.like(node.value(0), node.real(name)) if is_there else None


def _number(limit: Value | None, unlimited: float) -> float:
    """A limit as a number; NaN if it is known at run time only."""
    if limit is None:
        return unlimited
    data = limit.data
    if data is None or data.size != 1 or limit.info.data_type.is_bit_pattern:
        return math.nan
    return float(data.reshape(-1)[0])


def _gelu(node: Node) -> Value:
    """Exact, or nearly with the hyperbolic tangent."""
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.error(
            "the attribute 'approximate' has an unknown value",
            expected="none or tanh",
            actual=approximate,
        )
    operation = Activation(ActivationFunction.GELU, approximate=approximate == "tanh")
    return node.layer(operation, node.value(0))


def _swish(default: float) -> Operator:
    """Operator that multiplies with the logistic function of a multiple."""

    def convert(node: Node) -> Value:
        value, factor = node.value(0), node.real("alpha", default)
        scaled = value if factor == 1 else _linear(node, value, factor)
        gate = _apply(node, scaled, ActivationFunction.SIGMOID)
        return binary(node, BinaryOperation.MUL, value, gate)

    return Operator(convert, rounds_once=True)


def _linear(node: Node, value: Value, factor: float, addend: float = 0.0) -> Value:
    """A multiple, and something added."""
    return _apply(node, value, ActivationFunction.LINEAR, factor, addend)


def _affine(node: Node) -> Value:
    return _linear(node, node.value(0), node.real("alpha", 1.0), node.real("beta", 0.0))


def _scaled_tanh(node: Node) -> Value:
    a, b = node.real("alpha", 1.0), node.real("beta", 1.0)
    return _apply(node, node.value(0), ActivationFunction.TANH, a, b)


def _parametric_softplus(node: Node) -> Value:
    scaled = _linear(node, node.value(0), node.real("beta", 1.0))
    return _linear(
        node, _apply(node, scaled, ActivationFunction.SOFT_RELU), node.real("alpha", 1.0)
    )


def _hard_sigmoid(node: Node) -> Value:
    """A line between 0 and 1."""
    sloped = _linear(node, node.value(0), node.real("alpha", 0.2), node.real("beta", 0.5))
    return _apply(node, sloped, ActivationFunction.BOUNDED_RELU, 1.0, 0.0)


def _selu(node: Node) -> Value:
    """A multiple of the exponential linear unit."""
    alpha, gamma = node.real("alpha", _SELU[0]), node.real("gamma", _SELU[1])
    if node.version < 6 and node.attribute("alpha") is None:
        alpha = 1.6732
    if node.version < 6 and node.attribute("gamma") is None:
        gamma = 1.0507
    return _linear(node, _apply(node, node.value(0), ActivationFunction.ELU, alpha), gamma)


def _celu(node: Node) -> Value:
    """``alpha`` times the exponential linear unit of the ``alpha``-th part."""
    value, alpha = node.value(0), node.real("alpha", 1.0)
    if alpha == 0:
        raise node.error("alpha is 0", expected="another number")
    if alpha == 1:
        return _apply(node, value, ActivationFunction.ELU, 1.0)
    if alpha > 0:
        curved = _apply(node, _linear(node, value, 1 / alpha), ActivationFunction.ELU, 1.0)
        return _linear(node, curved, alpha)
    above = _apply(node, value, ActivationFunction.RELU)
    grown = unary(node, UnaryOperation.EXP, _linear(node, value, 1 / alpha))
    curved = _linear(node, grown, alpha, -alpha)
    below = binary(node, BinaryOperation.MINIMUM, curved, 0)
    return binary(node, BinaryOperation.ADD, above, below)


def _softsign(node: Node) -> Value:
    """``x / (1 + |x|)``."""
    value = node.value(0)
    size = unary(node, UnaryOperation.ABS, value)
    more = binary(node, BinaryOperation.ADD, size, 1)
    return binary(node, BinaryOperation.DIV, value, more)


def _thresholded_relu(node: Node) -> Value:
    """Return the elements above a limit, 0 elsewhere."""
    value = node.value(0)
    return _chosen(
        node,
        ComparisonOperation.GREATER,
        value,
        node.real("alpha", 1.0),
        value,
        node.like(value, 0),
    )


def _shrink(node: Node) -> Value:
    """Numbers nearer to 0 by ``bias``; 0 where they are not further away than ``lambd``."""
    value, bias, limit = node.value(0), node.real("bias", 0.0), node.real("lambd", 0.5)
    number = value.info.data_type
    is_whole = not number.is_float
    if is_whole and not (float(bias).is_integer()):
        real = node.cast(value, DataType.FLOAT64)
        return node.cast(_shrunk(node, real, bias, limit), number)
    return _shrunk(node, value, bias, limit)


def _shrunk(node: Node, value: Value, bias: float, limit: float) -> Value:
    """The same, in the type of a value."""
    if not value.info.data_type.is_float:
        limit = math.floor(limit)  # no whole number lies between
    less = binary(node, BinaryOperation.SUB, value, bias)
    more = binary(node, BinaryOperation.ADD, value, bias)
    below = _chosen(node, ComparisonOperation.LESS, value, -limit, more, 0)
    return _chosen(node, ComparisonOperation.GREATER, value, limit, less, below)


def _chosen(
    node: Node,
    comparison: ComparisonOperation,
    value: Value,
    limit: float,
    chosen: Value,
    other: Operand,
) -> Value:
    """Elements of `chosen` where a comparison with a number is true."""
    is_so = compared(node, comparison, value, limit)
    return selected(node, is_so, chosen, other)


OPERATORS: OperatorTable = {
    "Abs": _unary(UnaryOperation.ABS),
    "Acos": _unary(UnaryOperation.ACOS),
    "Acosh": _unary(UnaryOperation.ACOSH),
    "Asin": _unary(UnaryOperation.ASIN),
    "Asinh": _unary(UnaryOperation.ASINH),
    "Atan": _unary(UnaryOperation.ATAN),
    "Atanh": _unary(UnaryOperation.ATANH),
    "BitwiseNot": _unary(UnaryOperation.BITWISE_NOT),
    "Ceil": _unary(UnaryOperation.CEIL),
    "Cos": _unary(UnaryOperation.COS),
    "Cosh": _unary(UnaryOperation.COSH),
    "Erf": _unary(UnaryOperation.ERF),
    "Exp": _unary(UnaryOperation.EXP),
    "Floor": _unary(UnaryOperation.FLOOR),
    "Log": _unary(UnaryOperation.LOG),
    "Neg": _unary(UnaryOperation.NEG),
    "Not": _unary(UnaryOperation.LOGICAL_NOT),
    "Reciprocal": _unary(UnaryOperation.RECIPROCAL),
    "Round": _unary(UnaryOperation.ROUND),
    "Sign": _unary(UnaryOperation.SIGN),
    "Sin": _unary(UnaryOperation.SIN),
    "Sinh": _unary(UnaryOperation.SINH),
    "Sqrt": _unary(UnaryOperation.SQRT),
    "Tan": _unary(UnaryOperation.TAN),
    "Celu": Operator(_celu, rounds_once=True),
    "Clip": Operator(_clip),
    "Elu": _activation(ActivationFunction.ELU, 1.0, attribute="alpha"),
    "Gelu": Operator(_gelu),
    "HardSigmoid": Operator(_hard_sigmoid, rounds_once=True),
    "HardSwish": _activation(ActivationFunction.HARD_SWISH),
    "LeakyRelu": _activation(ActivationFunction.LEAKY_RELU, 0.01, attribute="alpha"),
    "Mish": _activation(ActivationFunction.MISH),
    "Relu": Operator(_relu),
    "Selu": Operator(_selu, rounds_once=True),
    "Shrink": Operator(_shrink),
    "Sigmoid": _activation(ActivationFunction.SIGMOID),
    "Softplus": _activation(ActivationFunction.SOFT_RELU),
    "Softsign": Operator(_softsign, rounds_once=True),
    "Swish": _swish(1.0),
    "Tanh": _activation(ActivationFunction.TANH, 1.0, 1.0),
    "ThresholdedRelu": Operator(_thresholded_relu),
    "Affine": Operator(_affine, rounds_once=True),
    "ParametricSoftplus": Operator(_parametric_softplus, rounds_once=True),
    "ScaledTanh": Operator(_scaled_tanh, rounds_once=True),
    "com.microsoft.Gelu": Operator(_gelu),
    "com.microsoft.QuickGelu": _swish(1.702),
}
