"""CpuRef's Tile."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Tile
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class TileWorkload(ReferenceWorkload[Tile]):
    """Broadcast the input over one more axis in front of each of its axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        repeated: list[int] = []
        single: list[int] = []
        for size, times in zip(inputs[0].shape, self.operation.multiples or (), strict=True):
            repeated += (times, size)
            single += (1, size)
        outputs[0].reshape(repeated)[...] = inputs[0].reshape(single)
