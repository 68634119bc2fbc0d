"""Expressions of the operations on float32 elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from armpy.graph import Layer
from armpy.ops import (
    Activation,
    ActivationFunction,
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


def has_expression(operation: Operation) -> bool:
    """Return whether an operation on float32 elements has an expression."""
    return isinstance(operation, Activation | ElementwiseBinary | ElementwiseUnary | Prelu)


def function_of(operation: Operation) -> Function:
    """The expression of an operation on float32 elements that has one."""
    if isinstance(operation, Activation):
        return _ACTIVATIONS[operation.function](operation)
    if isinstance(operation, ElementwiseUnary):
        return operation.operation.name.lower(), ()
    if isinstance(operation, Prelu):
        return "prelu", ()
    operation = expect(operation, ElementwiseBinary)
    name = operation.operation.name.lower()
    if operation.activation is FusedActivation.NONE:
        return name, ()
    low, high = operation.activation.bounds
    bounds = (-math.inf if low is None else low, math.inf if high is None else high)
    return f"{name}.clamp", bounds


def emit_real(emit: Emitter, layer: Layer) -> None:
    """Add the command of a layer that has such an expression."""
    function, parameters = function_of(layer.operation)
    inputs = given(layer)
    expression = call_of(function, len(inputs))
    emit_elementwise(emit, expression, inputs, layer.output, layer.name, parameters)
