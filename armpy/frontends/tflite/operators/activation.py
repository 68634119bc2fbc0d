"""Activation functions and normalisations."""

from __future__ import annotations

from armpy.frontends.tflite.node import (
    BoundOperator,
    Converter,
    ConverterTable,
    direct,
    require_no_activation,
)
from armpy.ops.activation_layers import (
    Activation,
    ActivationFunction,
    L2Normalization,
    LogSoftmax,
    Softmax,
)


def _activation(function: ActivationFunction, a: float = 0.0, b: float = 0.0) -> Converter:
    """Converter of an activation without options."""
    return direct(Activation(function, a, b))


def _leaky_relu(node: BoundOperator) -> Activation:
    alpha = node.options("LeakyReluOptions").real("Alpha")
    return Activation(ActivationFunction.LEAKY_RELU, alpha)


def _gelu(node: BoundOperator) -> Activation:
    approximate = node.options("GeluOptions").flag("Approximate")
    return Activation(ActivationFunction.GELU, approximate=approximate)


def _l2_normalization(node: BoundOperator) -> L2Normalization:
    require_no_activation(node.options("L2NormOptions"))
    return L2Normalization()


CONVERTERS: ConverterTable = {
    "ELU": _activation(ActivationFunction.ELU, 1.0),
    "GELU": direct(_gelu),
    "HARD_SWISH": _activation(ActivationFunction.HARD_SWISH),
    "LEAKY_RELU": direct(_leaky_relu),
    "LOGISTIC": _activation(ActivationFunction.SIGMOID),
    "RELU": _activation(ActivationFunction.RELU),
    "RELU6": _activation(ActivationFunction.BOUNDED_RELU, 6.0, 0.0),
    "RELU_0_TO_1": _activation(ActivationFunction.BOUNDED_RELU, 1.0, 0.0),
    "RELU_N1_TO_1": _activation(ActivationFunction.BOUNDED_RELU, 1.0, -1.0),
    "TANH": _activation(ActivationFunction.TANH, 1.0, 1.0),
    "L2_NORMALIZATION": direct(_l2_normalization),
    "LOG_SOFTMAX": direct(LogSoftmax()),
    "SOFTMAX": direct(lambda node: Softmax(node.options("SoftmaxOptions").real("Beta"))),
}
