"""Operations that the core and backends put into a graph, never a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, OperandInfos, Operation
from armpy.tensor import Shape, TensorInfo

__all__ = ["MemCopy", "PreCompiled", "UnfitGraph"]


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
        """Shapes that the backend said."""
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


@dataclass(frozen=True, slots=True)
class UnfitGraph(Operation):
    """The only layer of a branch that cannot run for the shapes of its inputs.

    Notes
    -----
    A choice of this branch is an error.
    """

    where: str
    """The layer of the branch that does not fit."""
    reason: str
    """Why it does not."""
    infos: tuple[TensorInfo, ...]
    """Outputs of the other branch."""

    inputs: ClassVar[tuple[Operand, ...]] = ()
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    def infer(
        self, inputs: OperandInfos, declared: Sequence[TensorInfo | None] = ()
    ) -> tuple[TensorInfo, ...]:
        """Infos of the other branch's outputs."""
        return self.infos

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Shapes of the other branch's outputs."""
        return tuple(info.shape for info in self.infos)
