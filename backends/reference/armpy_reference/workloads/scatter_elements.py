"""CpuRef's ScatterElements."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import ScatterElements
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.indices import element_places, scatter
from armpy_reference.workload import ReferenceWorkload


class ScatterElementsWorkload(ReferenceWorkload[ScatterElements]):
    """Copy the tensor and write the elements."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; any data type.

        Raises
        ------
        InvalidArgumentError
            If an index is out of range.
        """
        values, indices, updates = inputs
        axis = normalize_axis(self.operation.axis, values.ndim)
        places = element_places(indices, values.shape, axis, self.operation.wraps_negative)
        outputs[0][...] = values
        scatter(outputs[0], places, updates, self.operation.reduction)
