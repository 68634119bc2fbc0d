"""CpuRef's StridedSlice."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import StridedSlice
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class StridedSliceWorkload(ReferenceWorkload[StridedSlice]):
    """Copy what a NumPy index takes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        outputs[0][...] = inputs[0][self.operation.index(inputs[0].shape)]
