"""The device's computations; NumPy stands in for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from armpy.ops import Activation, ActivationFunction, BinaryOperation, FusedActivation, Softmax
from armpy.ops.operation import Array

Floats = npt.NDArray[np.float32]

BINARY_FUNCTIONS = {BinaryOperation.ADD: np.add, BinaryOperation.MUL: np.multiply}


def clamp(array: Array, activation: FusedActivation) -> None:
    """Apply a fused activation in place."""
    low, high = activation.bounds
    if low is not None or high is not None:
        np.clip(array, low, high, out=array)


def _relu(x: Floats, operation: Activation, out: Floats) -> None:
    """Nothing below 0."""
    np.maximum(x, 0, out=out)


def _bounded_relu(x: Floats, operation: Activation, out: Floats) -> None:
    """Nothing below b or above a."""
    np.clip(x, operation.b, operation.a, out=out)


def _leaky_relu(x: Floats, operation: Activation, out: Floats) -> None:
    """Less slope below 0."""
    out[...] = np.where(x > 0, x, np.float32(operation.a) * x)


ACTIVATIONS: dict[ActivationFunction, Callable[[Floats, Activation, Floats], None]] = {
    ActivationFunction.RELU: _relu,
    ActivationFunction.BOUNDED_RELU: _bounded_relu,
    ActivationFunction.LEAKY_RELU: _leaky_relu,
}


def softmax(x: Floats, operation: Softmax, out: Floats) -> None:
    """Exponentials along the axis, divided by their sum."""
    top = x.max(operation.axis, keepdims=True, initial=-np.inf)  # the axis may have no elements
    np.exp(np.float32(operation.beta) * (x - top), out=out)
    out /= out.sum(operation.axis, keepdims=True)
