"""CpuRef's LogicalBinary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import LogicalBinary, LogicalBinaryOperation
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_FUNCTIONS = {
    LogicalBinaryOperation.LOGICAL_AND: np.logical_and,
    LogicalBinaryOperation.LOGICAL_OR: np.logical_or,
    LogicalBinaryOperation.LOGICAL_XOR: np.logical_xor,
}


class LogicalBinaryWorkload(ReferenceWorkload[LogicalBinary]):
    """Logic with NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Combine with broadcasting."""
        _FUNCTIONS[self.operation.operation](inputs[0], inputs[1], out=outputs[0])
