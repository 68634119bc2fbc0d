"""Activation functions and normalisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.node import (
    BoundOperator,
    Converter,
    ConverterTable,
    direct,
    require_no_activation,
)
from armpy.graph import Value
from armpy.ops.activation_layers import (
    Activation,
    ActivationFunction,
    L2Normalization,
    LogSoftmax,
    Softmax,
)
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary


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


def _softmax(node: BoundOperator) -> Sequence[Value]:
    """Turn floats around for a beta that is not above 0, which LiteRT multiplies by as well."""
    beta = node.options("SoftmaxOptions").real("Beta")
    source = node.input(0)
    if beta > 0 or source is None or not source.info.data_type.is_float:
        return node.layer(Softmax(beta), *node.inputs)
    factor = node.network.constant(np.array(beta, source.info.data_type.dtype))
    turned = node.network.add(
        ElementwiseBinary(BinaryOperation.MUL), source, factor, name=f"{node.name}:scaled"
    )
    return node.layer(Softmax(), turned, *node.inputs[1:])


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
    "SOFTMAX": _softmax,
}
