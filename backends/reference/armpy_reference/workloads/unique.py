"""CpuRef's Unique."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Unique
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class UniqueWorkload(ReferenceWorkload[Unique]):
    """Find values with NumPy, which sorts them, and put them in order of appearance if asked."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compare elements, or slices of them."""
        axis = self.operation.axis
        values, indices, inverse, counts = np.unique(
            inputs[0], return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)
        if not self.operation.is_sorted:
            order = np.argsort(indices)
            values = np.take(values, order, 0 if axis is None else axis)
            indices, counts = indices[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return values, *(array.astype(np.int64) for array in (indices, inverse, counts))
