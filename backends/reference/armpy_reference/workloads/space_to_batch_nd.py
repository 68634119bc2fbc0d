"""CpuRef's SpaceToBatchNd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import SpaceToBatchNd
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class SpaceToBatchNdWorkload(ReferenceWorkload[SpaceToBatchNd]):
    """Pad, then copy a view in which block rows and columns are the outer axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        pads = self.operation.pad_list or ()
        first = 2 if self.operation.data_layout.channel_axis == 1 else 1
        spatial = range(first, first + len(pads))
        around = [(0, 0)] * inputs[0].ndim
        around[first : first + len(pads)] = pads
        info = self.info.outputs[0]
        stored_zero = "" if info.data_type.is_string else info.zero_point
        padded = np.pad(inputs[0], around, constant_values=stored_zero)

        split: list[int] = []
        block_axes: list[int] = []
        for axis, size in enumerate(padded.shape):
            if axis in spatial:
                block = (self.operation.block_shape or ())[axis - first]
                block_axes.append(len(split) + 1)
                split += (size // block, block)
            else:
                split.append(size)
        others = [axis for axis in range(len(split)) if axis not in block_axes]
        moved = padded.reshape(split).transpose(*block_axes, *others)
        outputs[0].reshape(moved.shape)[...] = moved
