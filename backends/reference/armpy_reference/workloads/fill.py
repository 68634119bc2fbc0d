"""CpuRef's Fill."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Fill
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class FillWorkload(ReferenceWorkload[Fill]):
    """Write the number everywhere."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Fill; any data type."""
        outputs[0][...] = inputs[0].reshape(())
