"""CpuRef's GatherElements."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import GatherElements
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.indices import element_places
from armpy_reference.workload import ReferenceWorkload


class GatherElementsWorkload(ReferenceWorkload[GatherElements]):
    """Copy the elements that the indices name."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type.

        Raises
        ------
        InvalidArgumentError
            If an index is out of range.
        """
        values, indices = inputs
        axis = normalize_axis(self.operation.axis, values.ndim)
        places = element_places(indices, values.shape, axis, self.operation.wraps_negative)
        outputs[0][...] = values[places]
