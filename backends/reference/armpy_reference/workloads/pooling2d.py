"""CpuRef's Pooling2d."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Pooling2d
from armpy.ops.operation import Array
from armpy_reference.pools import PoolingWorkload
from armpy_reference.windows import run_channels_last


class Pooling2dWorkload(PoolingWorkload[Pooling2d]):
    """Combine the windows' columns, then their rows."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Summarise all images at once."""
        run_channels_last(self.pool, inputs[0], outputs[0], self.operation.data_layout)
