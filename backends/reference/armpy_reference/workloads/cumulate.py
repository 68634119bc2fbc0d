"""CpuRef's Cumulate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Cumulate, ReduceOperation
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.workload import ReferenceWorkload


class CumulateWorkload(ReferenceWorkload[Cumulate]):
    """Accumulate with NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Halves in float32, all others in their own type."""
        values = np.moveaxis(inputs[0], normalize_axis(self.operation.axis or 0, inputs[0].ndim), 0)
        out = np.moveaxis(outputs[0], normalize_axis(self.operation.axis or 0, outputs[0].ndim), 0)
        if self.operation.reverse:
            values, out = values[::-1], out[::-1]
        is_sum = self.operation.operation is ReduceOperation.SUM
        wide = np.dtype(np.float32) if values.dtype == np.float16 else values.dtype
        total = (np.add if is_sum else np.multiply).accumulate(values, 0, wide)
        if not self.operation.exclusive:
            out[...] = total
            return
        out[:1] = 0 if is_sum else 1
        out[1:] = total[:-1]
