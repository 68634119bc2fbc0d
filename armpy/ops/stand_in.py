"""Operation that is carried for a backend that knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.errors import LayerValidationError
from armpy.ops.operation import Operand, Operation
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["StandIn"]


@dataclass(frozen=True, slots=True)
class StandIn(Operation):
    """Stand for a custom operation of which armpy knows only inputs and outputs.

    Notes
    -----
    Outputs' types and known shapes are declared with the layer. No backend of armpy's own takes it;
    others are asked by `ILayerSupport` as usual. If no backend supports it, the network cannot be
    loaded.

    References
    ----------
    Arm NN StandIn; TFLite CUSTOM.
    """

    operator: str
    """Name of the operator in the model's file."""
    options: bytes = b""
    """The file's options, in the vendor's own form."""
    num_results: int = 1
    """Number of outputs."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", optional=True, variadic=True),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)
    has_data_dependent_outputs: ClassVar[bool] = True
    """Whether only the declaration, or the workload, determines the outputs' shapes."""

    @property
    def num_outputs(self) -> int:
        """Number of outputs that the file has."""
        return self.num_results

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing; the declared shapes stay."""
        return (None,) * self.num_results

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Raise `LayerValidationError`: no type follows from the inputs."""
        raise LayerValidationError(
            f"the outputs of the custom operation '{self.operator}' are not declared",
            expected="a TensorInfo for each output",
            fix="Pass outputs=[TensorInfo(...)]",
        )
