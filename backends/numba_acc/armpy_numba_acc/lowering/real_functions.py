"""Expressions of the operations on float32 elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from armpy.graph import Layer, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    FusedActivation,
    Prelu,
)
from armpy.ops.operation import Operation
from armpy_numba_acc.lowering.broadcasting import emit_elementwise
from armpy_numba_acc.lowering.operands import expect, given
from armpy_numba_acc.machine.expressions import call_of
from armpy_numba_acc.program.emitter import Emitter

Function = tuple[str, tuple[float, ...]]
"""Tokens of an expression that follow those of its inputs, and their parameters."""

_Choice = Callable[[Activation], Function]


def _tanh(operation: Activation) -> Function:
    """The plain function where nothing is scaled."""
    is_plain = operation.a == operation.b == 1
    return ("tanh", ()) if is_plain else ("scaled_tanh", (operation.a, operation.b))


_ACTIVATIONS: Mapping[ActivationFunction, _Choice] = {
    ActivationFunction.SIGMOID: lambda _: ("sigmoid", ()),
    ActivationFunction.TANH: _tanh,
    ActivationFunction.LINEAR: lambda op: ("linear", (op.a, op.b)),
    ActivationFunction.RELU: lambda _: ("clamp", (0.0, math.inf)),
    ActivationFunction.BOUNDED_RELU: lambda op: ("clamp", (op.b, op.a)),
    ActivationFunction.SOFT_RELU: lambda _: ("soft_relu", ()),
    ActivationFunction.LEAKY_RELU: lambda op: ("leaky_relu", (op.a,)),
    ActivationFunction.ABS: lambda _: ("abs", ()),
    ActivationFunction.SQRT: lambda _: ("sqrt", ()),
    ActivationFunction.SQUARE: lambda _: ("square", ()),
    ActivationFunction.ELU: lambda op: ("elu", (op.a,)),
    ActivationFunction.HARD_SWISH: lambda _: ("hard_swish", ()),
    ActivationFunction.GELU: lambda op: ("gelu_by_tanh" if op.approximate else "gelu", ()),
    ActivationFunction.MISH: lambda _: ("mish", ()),
}
"""Expression and parameters of each function of floats."""


_POWER = BinaryOperation.POWER


def has_expression(operation: Operation) -> bool:
    """Return whether an operation on float32 elements has an expression."""
    return isinstance(operation, Activation | ElementwiseBinary | ElementwiseUnary | Prelu)


def operands_of(layer: Layer) -> list[Value]:
    """The inputs of a layer's expression; of a power of two, which is a square, the base alone."""
    return given(layer)[: 1 if _is_square(layer) else None]


def _is_square(layer: Layer) -> bool:
    """Return whether a layer raises to the power of two."""
    operation = layer.operation
    if not isinstance(operation, ElementwiseBinary) or operation.operation is not _POWER:
        return False
    exponent = layer.constant("rhs")
    return exponent is not None and exponent.size == 1 and float(exponent.reshape(())) == 2.0


def function_of(layer: Layer) -> Function:
    """The expression of a layer on float32 elements that has one."""
    operation = layer.operation
    if isinstance(operation, Activation):
        return _ACTIVATIONS[operation.function](operation)
    if isinstance(operation, ElementwiseUnary):
        return operation.operation.name.lower(), ()
    if isinstance(operation, Prelu):
        return "prelu", ()
    operation = expect(operation, ElementwiseBinary)
    name = "square" if _is_square(layer) else operation.operation.name.lower()
    if operation.activation is FusedActivation.NONE:
        return name, ()
    low, high = operation.activation.bounds
    bounds = (-math.inf if low is None else low, math.inf if high is None else high)
    return f"{name}.clamp", bounds


def emit_real(emit: Emitter, layer: Layer) -> None:
    """Add the command of a layer that has such an expression."""
    (function, parameters), inputs = function_of(layer), operands_of(layer)
    expression = call_of(function, len(inputs))
    emit_elementwise(emit, expression, inputs, layer.output, layer.name, parameters)
