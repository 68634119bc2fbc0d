"""Base of all workloads of CpuRef."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from armpy.backend import HostTensorHandle, ITensorHandle, IWorkload, WorkloadInfo
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo

OperationT = TypeVar("OperationT", bound=Operation)

_TO_READ = {"read": True, "write": False}
_TO_WRITE = {"read": False, "write": True}
"""Arguments of `ITensorHandle.map`."""


class ReferenceWorkload(IWorkload, Generic[OperationT]):
    """A workload that computes arrays from arrays.

    A subclass lives in the module named after its operation in snake case and is named
    after it with ``Workload`` at the end; that is how the factory finds it. It overrides
    `prepare` for work that is done once, and `compute`; where the elements decide on the
    outputs' shapes, `compute_dynamic` in place of the latter. Where all outputs are empty, neither
    `prepare` nor `compute` is called, but `check`: the sizes of empty tensors may be of any
    magnitude, and tables of these sizes would take time and memory. All run without NumPy's
    floating-point warnings: infinities and NaNs are answers like any other.
    """

    def __init__(self, operation: OperationT, info: WorkloadInfo) -> None:
        self.operation = operation
        self.info = info
        self._is_dynamic = operation.has_data_dependent_outputs
        # What has no elements needs no tables, whose sizes no limit of memory bounds.
        self._computes = self._is_dynamic or not all(_is_empty(output) for output in info.outputs)
        if self._computes:
            with np.errstate(all="ignore"):
                self.prepare()

    @property
    def input_infos(self) -> tuple[TensorInfo, ...]:
        """Infos of the inputs, for operations whose operands cannot be left out."""
        return self.info.inputs  # type: ignore[return-value]  # no None, then

    def prepare(self) -> None:
        """Do what needs to be done once, before the first execution."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per input, constants included; None for optional ones that are left out.
        outputs : sequence of ndarray
            Arrays to be written completely; they overlap no input.
        """
        raise NotImplementedError(f"{type(self).__name__} computes nothing")

    def check(self, inputs: Sequence[Array]) -> None:
        """Refuse elements that `compute` would refuse, where there is nothing to compute.

        Parameters
        ----------
        inputs : sequence of ndarray
            Arrays, as for `compute`.
        """

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute outputs whose shapes follow from the elements of the inputs.

        Called instead of `compute` for operations that have data-dependent outputs.

        Parameters
        ----------
        inputs : sequence of ndarray
            Arrays, as for `compute`.

        Returns
        -------
        sequence of ndarray
            One per output, of its dtype of any shape.
        """
        raise NotImplementedError(f"{type(self).__name__} computes nothing")

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the outputs from mapped handles."""
        opened: list[ITensorHandle] = []
        try:
            arrays = _mapped(inputs, opened, _TO_READ)
            with np.errstate(all="ignore"):
                if not self._is_dynamic:
                    targets = _mapped(outputs, opened, _TO_WRITE)
                    if self._computes and any(array.size for array in targets):
                        self.compute(arrays, targets)
                    else:
                        self.check(arrays)
                    return
                results = self.compute_dynamic(arrays)
            for handle, result in zip(outputs, results, strict=True):
                handle.copy_in_from(result)
        finally:
            for handle in opened:
                handle.unmap()


def _is_empty(info: TensorInfo) -> bool:
    """Return whether a tensor is known to have no elements."""
    return info.shape is not None and 0 in info.shape


def _mapped(
    handles: Sequence[ITensorHandle | None],
    opened: list[ITensorHandle],
    intent: Mapping[str, bool],
) -> Sequence[Array]:
    """The handles' elements, with None where left out; adds the handles to unmap."""
    arrays: list[Array] = []
    for handle in handles:
        if type(handle) is HostTensorHandle:  # whose access has no end, and nearly all are
            arrays.append(handle.array)
        elif handle is None:
            arrays.append(None)  # type: ignore[arg-type]  # `compute` declares it
        else:
            arrays.append(handle.map(**intent))
            opened.append(handle)
    return arrays
