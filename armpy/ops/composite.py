"""Operations that turn into others once enough is known about their operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from armpy.ops.operation import Array, Operand, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

__all__ = ["Composite", "LayerBuilder", "Tensor"]


class Tensor(Protocol):
    """Value of the graph, as far as an operation may know it."""

    @property
    def info(self) -> TensorInfo:
        """Shape, type and quantisation."""

    @property
    def data(self) -> Array | None:
        """The elements of a constant."""

    @property
    def is_constant(self) -> bool:
        """Return whether its elements are known."""


class LayerBuilder(Protocol):
    """Adds the layers that a composite operation turns into."""

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Any],  # Any: values of the graph, which this package does not know
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Any, ...]:  # Any: as above
        """Add a layer; returns its outputs, which are constants where that is all known."""

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Any:  # Any: as above
        """Add a constant."""


class Composite(Operation):
    """An operation that stands for layers which depend on its operands.

    A front-end uses it where it cannot say yet which layers it needs: shapes or parameters
    may be known only when the network runs. The core expands it as soon as every input is
    fully shaped and those that decide are constant; so no backend ever sees one.
    """

    __slots__ = ()

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", optional=True, variadic=True),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    @abstractmethod
    def decides(self, index: int) -> bool:
        """Return whether the elements of input `index` must be known to expand."""

    def is_ready(self, inputs: Sequence[Tensor | None]) -> bool:
        """Return whether enough is known to expand."""
        return all(
            value is None
            or (value.info.is_fully_shaped and (value.is_constant or not self.decides(i)))
            for i, value in enumerate(inputs)
        )

    @abstractmethod
    def expand(self, build: LayerBuilder, inputs: Sequence[Any]) -> Sequence[Any]:
        """Add the layers that this operation stands for.

        Parameters
        ----------
        inputs
            Ready; those left out at the end may be missing.

        Returns
        -------
        sequence of Value
            One per output.

        Raises
        ------
        LayerValidationError
            If the operands break a rule of the operation.
        """
