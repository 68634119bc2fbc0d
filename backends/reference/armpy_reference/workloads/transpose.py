"""CpuRef's Transpose."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Transpose
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class TransposeWorkload(ReferenceWorkload[Transpose]):
    """Copy a view with permuted axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        outputs[0][...] = inputs[0].transpose(self.operation.perm or ())
