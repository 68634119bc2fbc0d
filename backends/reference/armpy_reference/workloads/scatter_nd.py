"""CpuRef's ScatterNd."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import ScatterNd
from armpy.ops.operation import Array
from armpy_reference.indices import places_of, scatter
from armpy_reference.workload import ReferenceWorkload


class ScatterNdWorkload(ReferenceWorkload[ScatterNd]):
    """Copy the tensor and write the slices."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; any data type.

        Raises
        ------
        InvalidArgumentError
            If a coordinate is out of range.
        """
        values, indices, updates = inputs
        places = self._places(values, indices)
        outputs[0][...] = values
        scatter(outputs[0], places, updates, self.operation.reduction)

    def check(self, inputs: Sequence[Array]) -> None:
        """Check the coordinates."""
        self._places(inputs[0], inputs[1])

    def _places(self, values: Array, indices: Array) -> tuple[Array, ...]:
        """Coordinates from the front; an InvalidArgumentError if one is out of range."""
        return tuple(
            places_of(indices[..., axis], values.shape[axis], self.operation.wraps_negative)
            for axis in range(indices.shape[-1])
        )
