"""CpuRef's Range."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Range
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class RangeWorkload(ReferenceWorkload[Range]):
    """Write the numbers that the attributes say."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; there is no input."""
        for output, values in zip(outputs, self.operation.infer_values(()) or (), strict=True):
            output[...] = values
