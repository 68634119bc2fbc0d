"""Workloads of operations whose weights are prepared as a cell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from armpy.ops.operation import Array
from armpy_reference.recurrent.operands import has_constant_weights
from armpy_reference.workload import OperationT, ReferenceWorkload

CellT = TypeVar("CellT")


class CellWorkload(ReferenceWorkload[OperationT], Generic[OperationT, CellT]):
    """A workload that prepares its cell once where all weights are constants."""

    def prepare(self) -> None:
        """Prepare the weights, if all of them are constants."""
        is_constant = has_constant_weights(self.operation, self.info)
        self._cell = self.make_cell(self.info.constants) if is_constant else None

    def cell_for(self, inputs: Sequence[Array]) -> CellT:
        """The cell of an execution with these inputs."""
        return self.make_cell(inputs) if self._cell is None else self._cell

    @abstractmethod
    def make_cell(self, operands: Sequence[Array | None]) -> CellT:
        """Prepare the weights.

        Parameters
        ----------
        operands : sequence of (ndarray or None)
            One per input of the operation; the weights among them count.
        """
