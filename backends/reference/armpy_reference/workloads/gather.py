"""CpuRef's Gather."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Gather
from armpy.ops.operation import Array
from armpy_reference.indices import places_of
from armpy_reference.workload import ReferenceWorkload


class GatherWorkload(ReferenceWorkload[Gather]):
    """Copy the slices that the indices name."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type.

        Raises
        ------
        InvalidArgumentError
            If an index is out of range.
        """
        values, indices = inputs
        axis, batch = self.operation.resolved_axes(values.ndim, indices.ndim)
        indices = self._places(values, indices)
        # Each batch looks up slices of its own; no batch axes make one batch.
        for at in np.ndindex(values.shape[:batch]):
            outputs[0][at] = np.take(values[at], indices[at], axis - batch)

    def check(self, inputs: Sequence[Array]) -> None:
        """Check the indices."""
        self._places(inputs[0], inputs[1])

    def _places(self, values: Array, indices: Array) -> Array:
        """Indices from the front; an InvalidArgumentError if one is out of range."""
        axis, _ = self.operation.resolved_axes(values.ndim, indices.ndim)
        return places_of(indices, values.shape[axis], self.operation.wraps_negative)
