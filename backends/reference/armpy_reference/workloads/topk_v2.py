"""CpuRef's TopkV2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import TopkV2
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class TopkV2Workload(ReferenceWorkload[TopkV2]):
    """Sort and take the first or last elements."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy elements and write their indices."""
        values, (top, indices) = inputs[0], outputs
        size, k = values.shape[-1], top.shape[-1]
        largest = self.operation.largest
        # A stable sort leaves equal elements as they stand; the largest are read from its end.
        forwards = self.operation.larger_index_first is largest
        order = np.argsort(values if forwards else values[..., ::-1], axis=-1, kind="stable")
        order = (order[..., ::-1] if largest else order)[..., :k]
        order = order if forwards else size - 1 - order
        top[...] = np.take_along_axis(values, order, axis=-1)
        indices[...] = order
