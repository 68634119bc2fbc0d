"""CpuRef's ChannelShuffle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import ChannelShuffle
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class ChannelShuffleWorkload(ReferenceWorkload[ChannelShuffle]):
    """Swap the two axes that groups and their elements make."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        groups, axis = self.operation.num_groups, self.operation.axis
        values = np.moveaxis(inputs[0], axis, -1)
        size = values.shape[-1] // groups
        dealt = values.reshape(*values.shape[:-1], groups, size).swapaxes(-1, -2)
        np.moveaxis(outputs[0], axis, -1)[...] = dealt.reshape(values.shape)
