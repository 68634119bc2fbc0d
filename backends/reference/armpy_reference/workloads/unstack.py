"""CpuRef's Unstack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Unstack
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class UnstackWorkload(ReferenceWorkload[Unstack]):
    """Copy one part per position along the axis."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        parts = np.moveaxis(inputs[0], self.operation.axis, 0)
        for output, part in zip(outputs, parts, strict=True):
            output[...] = part
