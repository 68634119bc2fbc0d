"""Layers, prepared once and executed often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import ITensorHandle, IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.errors import UnimplementedError
from armpy.ops import Activation, ElementwiseBinary, Reshape, Softmax
from armpy.ops.operation import Array, Operation
from armpy_example_workloads.kernels import ACTIVATIONS, BINARY_FUNCTIONS, clamp, softmax


class ExampleWorkload(IWorkload):
    """One layer.

    Notes
    -----
    Several threads may execute it at once, so nothing of an execution is kept on it.
    """

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the output in its own memory."""
        arrays = [handle.map(write=False) for handle in inputs if handle is not None]
        with np.errstate(all="ignore"):  # infinities and NaNs are answers like any other
            compute(self._operation, arrays, outputs[0].map(read=False))
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()


def compute(operation: Operation, inputs: Sequence[Array], out: Array) -> None:
    """Run the kernel of an operation."""
    match operation:
        case ElementwiseBinary():
            BINARY_FUNCTIONS[operation.operation](inputs[0], inputs[1], out=out)
            clamp(out, operation.activation)
        case Activation():
            ACTIVATIONS[operation.function](inputs[0], operation, out)
        case Softmax():
            softmax(inputs[0], operation, out)
        case Reshape():
            out[...] = inputs[0].reshape(out.shape)
        case _:
            raise UnimplementedError("there is no kernel for it", where=operation.name)


class ExampleWorkloadFactory(IWorkloadFactory):
    """Prepares the layers of one network."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload; a device's would pack constants here (`info.constants`)."""
        return ExampleWorkload(operation)
