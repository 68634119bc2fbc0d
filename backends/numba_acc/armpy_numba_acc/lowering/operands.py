"""Typed views of what a lowering is given: operations of one kind, elements of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from armpy.errors import BackendError
from armpy.graph import Layer, Value
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.program.registry import Check

OperationT = TypeVar("OperationT", bound=Operation)


def expect(operation: Operation, kind: type[OperationT]) -> OperationT:
    """An operation as the kind that it is known to be.

    Raises
    ------
    BackendError
        If it is of another kind: a lowering is registered for what it is not for.
    """
    if not isinstance(operation, kind):
        raise BackendError(
            "a lowering was given another operation than it is for",
            where=f"NumbaAcc / {operation.name}",
            expected=kind.__name__,
            actual=operation.name,
        )
    return operation


def elements_of(layer: Layer, operand: str) -> Array:
    """Elements of an operand that is known to be constant.

    Raises
    ------
    BackendError
        If it is not: the layer should have been refused, or lowered otherwise.
    """
    elements = layer.constant(operand)
    if elements is None:
        raise BackendError(
            f"the operand {operand!r} is not constant",
            where=f"NumbaAcc / {layer.where}",
            expected="elements that are known when the network is loaded",
            actual="a tensor",
        )
    return elements


def given(layer: Layer) -> list[Value]:
    """A layer's inputs, but those that are left out."""
    return [value for value in layer.inputs if value is not None]


def needs(*attributes: str) -> Check:
    """Make a check that attributes are known: operands may set them at run time only."""

    def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
        """Known attributes."""
        missing = [name for name in attributes if getattr(operation, name) is None]
        return f"{missing[0]} is not constant" if missing else ""

    return check


anything = needs()
"""The check of what can always be lowered."""
