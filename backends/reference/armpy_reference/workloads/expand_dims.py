"""CpuRef's ExpandDims."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import ExpandDims
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class ExpandDimsWorkload(ReferenceWorkload[ExpandDims]):
    """Copy the elements in order."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        outputs[0][...] = inputs[0].reshape(outputs[0].shape)
