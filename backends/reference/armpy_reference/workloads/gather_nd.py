"""CpuRef's GatherNd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import GatherNd
from armpy.ops.operation import Array
from armpy_reference.indices import check_range
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
        depth = indices.shape[-1]
        coordinates = tuple(np.moveaxis(indices, -1, 0))
        for axis in range(depth):
            check_range(coordinates[axis], values.shape[axis])
        outputs[0][...] = values[coordinates]
