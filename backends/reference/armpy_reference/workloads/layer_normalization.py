"""CpuRef's LayerNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import LayerNormalization
from armpy.ops.operation import Array
from armpy_reference.reals import mean_in_range
from armpy_reference.workload import ReferenceWorkload


class LayerNormalizationWorkload(ReferenceWorkload[LayerNormalization]):
    """Means along the axes with NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float64; round once."""
        axes, dtype = self.operation.axes, inputs[0].dtype
        values = inputs[0].astype(np.float64)
        values -= mean_in_range(values, axes, dtype)
        variance = mean_in_range(np.square(values), axes, dtype)
        values /= np.sqrt(variance + self.operation.eps)
        gamma, beta = (*inputs[1:], None, None)[:2]
        if gamma is not None:
            values *= gamma
        if beta is not None:
            values += beta
        outputs[0][...] = values
