"""CpuRef's Pooling3d."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Pooling3d
from armpy.ops.operation import Array
from armpy_reference.pools import PoolingWorkload
from armpy_reference.volumes import run_channels_last_3d


class Pooling3dWorkload(PoolingWorkload[Pooling3d]):
    """Combine the windows' columns, then their rows, then their slices."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Summarise all volumes at once."""
        run_channels_last_3d(self.pool, inputs[0], outputs[0], self.operation.data_layout)
