"""CpuRef's BroadcastTo."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import BroadcastTo
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class BroadcastToWorkload(ReferenceWorkload[BroadcastTo]):
    """Copy with NumPy's broadcasting."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        outputs[0][...] = inputs[0]
