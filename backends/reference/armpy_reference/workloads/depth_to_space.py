"""CpuRef's DepthToSpace."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import DepthToSpace
from armpy.ops.operation import Array
from armpy.types import DataLayout
from armpy_reference.workload import ReferenceWorkload


class DepthToSpaceWorkload(ReferenceWorkload[DepthToSpace]):
    """Copy a view in which block rows and columns are axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        block = self.operation.block_size
        if self.operation.data_layout is DataLayout.NCHW:
            n, c, h, w = inputs[0].shape
            blocks = inputs[0].reshape(n, block, block, c // block**2, h, w)
            moved = blocks.transpose(0, 3, 4, 1, 5, 2)
        else:
            n, h, w, c = inputs[0].shape
            blocks = inputs[0].reshape(n, h, w, block, block, c // block**2)
            moved = blocks.transpose(0, 1, 3, 2, 4, 5)
        outputs[0].reshape(moved.shape)[...] = moved
