"""CpuRef's BatchToSpaceNd."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import BatchToSpaceNd
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class BatchToSpaceNdWorkload(ReferenceWorkload[BatchToSpaceNd]):
    """Move block rows and columns from the batch after the spatial axes, then crop."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        block = self.operation.block_shape or ()
        first = 2 if self.operation.data_layout.channel_axis == 1 else 1
        batches, *rest = inputs[0].shape
        batches = outputs[0].shape[0]
        split = inputs[0].reshape(*block, batches, *rest)

        order: list[int] = []
        uncropped: list[int] = []
        crop: list[slice] = []
        for axis, size in enumerate((batches, *rest)):
            order.append(len(block) + axis)
            uncropped.append(size)
            crop.append(slice(None))
            if first <= axis < first + len(block):
                order.append(axis - first)
                uncropped[-1] *= block[axis - first]
                before = (self.operation.crops or ())[axis - first][0]
                crop[-1] = slice(before, before + outputs[0].shape[axis])
        outputs[0][...] = split.transpose(order).reshape(uncropped)[tuple(crop)]
