"""CpuRef's GatherNd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import GatherNd
from armpy.ops.operation import Array
from armpy_reference.indices import places_of
from armpy_reference.workload import ReferenceWorkload


class GatherNdWorkload(ReferenceWorkload[GatherNd]):
    """Copy the slices that the coordinates name."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type.

        Raises
        ------
        InvalidArgumentError
            If a coordinate is out of range.
        """
        values, indices = inputs
        batch = self.operation.batch_dims
        places = self._places(values, indices)
        for at in np.ndindex(values.shape[:batch]):
            outputs[0][at] = values[at][tuple(place[at] for place in places)]

    def check(self, inputs: Sequence[Array]) -> None:
        """Check the coordinates."""
        self._places(inputs[0], inputs[1])

    def _places(self, values: Array, indices: Array) -> tuple[Array, ...]:
        """Coordinates from the front; an InvalidArgumentError if one is out of range."""
        batch, wraps = self.operation.batch_dims, self.operation.wraps_negative
        indexed = values.shape[batch : batch + indices.shape[-1]]
        return tuple(
            places_of(indices[..., axis], size, wraps) for axis, size in enumerate(indexed)
        )
