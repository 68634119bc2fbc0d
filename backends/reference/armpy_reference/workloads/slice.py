"""CpuRef's Slice."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Slice
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class SliceWorkload(ReferenceWorkload[Slice]):
    """Copy a block."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        block = tuple(
            slice(begin, begin + size)
            for begin, size in zip(self.operation.begin or (), outputs[0].shape, strict=True)
        )
        outputs[0][...] = inputs[0][block]
