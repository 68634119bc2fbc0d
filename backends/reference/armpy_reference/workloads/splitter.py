"""CpuRef's Splitter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Splitter
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class SplitterWorkload(ReferenceWorkload[Splitter]):
    """Copy one part after the other."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        axis = self.operation.axis or 0
        ends = np.cumsum([output.shape[axis] for output in outputs])
        for output, part in zip(outputs, np.split(inputs[0], ends[:-1], axis), strict=True):
            output[...] = part
