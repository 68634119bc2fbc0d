"""What all workloads of CpuRef have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from armpy.backend import ITensorHandle, IWorkload, WorkloadInfo
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo

OperationT = TypeVar("OperationT", bound=Operation)


class ReferenceWorkload(IWorkload, Generic[OperationT]):
    """A workload that computes arrays from arrays.

    Parameters
    ----------
    operation : Operation
    info : WorkloadInfo

    Notes
    -----
    A subclass lives in the module named after its operation in snake case and is named
    after it with ``Workload`` at the end; that is how the factory finds it. It overrides
    `prepare` for work that is done once, and `compute`. Both run without NumPy's
    floating-point warnings: infinities and NaNs are answers like any other.
    """

    def __init__(self, operation: OperationT, info: WorkloadInfo) -> None:
        self.operation = operation
        self.info = info
        with np.errstate(all="ignore"):
            self.prepare()

    @property
    def input_infos(self) -> tuple[TensorInfo, ...]:
        """Infos of the inputs, for operations whose operands cannot be left out."""
        return self.info.inputs  # type: ignore[return-value]  # no None, then

    def prepare(self) -> None:
        """Do what needs to be done once, before the first execution."""

    @abstractmethod
    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per input, constants included; None for optional ones that are left out.
        outputs : sequence of ndarray
            To be written completely; they overlap no input.
        """

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the outputs from mapped handles."""
        arrays = [None if handle is None else handle.map() for handle in inputs]
        with np.errstate(all="ignore"):
            self.compute(arrays, [handle.map() for handle in outputs])  # type: ignore[arg-type]
