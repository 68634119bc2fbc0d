"""Custom operator: what a plugin says of an operator that a file names and armpy does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.graph import Value
    from armpy.ops.operation import Array, Operation
    from armpy.tensor import TensorInfo


class OperatorParts(Protocol):
    """An operator of a file whose inputs' shapes are known, while its layers are added.

    Attributes
    ----------
    outputs : sequence of TensorInfo
        Types and quantisations that the file declares.
    options : bytes
        Further metadata of the file, in the vendor's own form.
    """

    inputs: Sequence[Value | None]
    outputs: Sequence[TensorInfo]
    options: bytes

    def value(self, index: int) -> Value:
        """An input that has to be there."""

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of an input."""

    def layer(
        self, operation: Operation, *inputs: Value | None, output: TensorInfo | None = None
    ) -> Value:
        """Add a layer with one output, whose info is needed where it does not follow."""

    def constant(self, data: Array) -> Value:
        """Add a constant."""


CustomConverter: TypeAlias = "Callable[[Any], Value | Sequence[Value]]"  # Any: OperatorParts
"""Adds the layers of an operator, `OperatorParts`, and returns its outputs."""


@dataclass(frozen=True, slots=True)
class CustomOperator:
    """A custom operator of .tflite files, and the layers that it becomes.

    Raises InvalidArgumentError if a field cannot be used.

    References
    ----------
    TFLite ``MutableOpResolver::AddCustom``.
    """

    name: str
    """The custom code in the file."""
    convert: CustomConverter
    """Called with `OperatorParts`; returns the operator's output, or one per output."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError(
                "its name cannot be used",
                where="CustomOperator",
                expected="the operator's name in files",
                actual=repr(self.name),
            )
        if not callable(self.convert):
            raise InvalidArgumentError(
                "its convert cannot be used",
                where="CustomOperator",
                expected="something that can be called",
                actual=repr(self.convert),
            )
