"""Operations that the core and backends put into a graph, never a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from armpy.ops.operation import Operand, Operation
from armpy.tensor import Shape, TensorInfo

__all__ = ["MemCopy", "PreCompiled"]


@dataclass(frozen=True, slots=True)
class PreCompiled(Operation):
    """A subgraph that a backend has compiled into a program of its own.

    References
    ----------
    Arm NN PreCompiled.
    """

    program: Any  # Any: the core carries it without looking
    """Known to the backend alone."""
    output_shapes: tuple[tuple[int, ...], ...]
    """One per output."""
    working_bytes: int = 0
    """Own memory of one execution, counted towards the caller's limit."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", variadic=True),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    @property
    def num_outputs(self) -> int:
        """One per output shape."""
        return len(self.output_shapes)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """As the backend said."""
        return self.output_shapes


@dataclass(frozen=True, slots=True)
class MemCopy(Operation):
    """Copy a tensor from one backend's memory into another's.

    Notes
    -----
    Inserted between backends that cannot share memory, and executed by the core.

    References
    ----------
    Arm NN MemCopy.
    """

    requantizes: ClassVar[bool] = False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)
