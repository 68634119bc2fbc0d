"""CpuRef's OneHot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import OneHot
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.workload import ReferenceWorkload


class OneHotWorkload(ReferenceWorkload[OneHot]):
    """Compare the indices with the positions along the new axis."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; any data type."""
        indices, on_value, off_value = inputs[:3]
        axis = normalize_axis(self.operation.axis, outputs[0].ndim)
        positions = np.arange(outputs[0].shape[axis])
        positions = positions.reshape((-1, *(1,) * (indices.ndim - axis)))
        marked = np.expand_dims(indices, axis) == positions
        outputs[0][...] = np.where(marked, on_value.reshape(()), off_value.reshape(()))
