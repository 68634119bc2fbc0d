"""CpuRef's InstanceNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import InstanceNormalization
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class InstanceNormalizationWorkload(ReferenceWorkload[InstanceNormalization]):
    """Means over the spatial axes with NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float64, where no square of float32 overflows; round once."""
        operation = self.operation
        axes = operation.data_layout.spatial_axes
        values = inputs[0].astype(np.float64)
        values -= values.mean(axis=axes, keepdims=True)
        variance = np.square(values).mean(axis=axes, keepdims=True)
        values *= operation.gamma / np.sqrt(variance + operation.eps)
        outputs[0][...] = values + operation.beta
