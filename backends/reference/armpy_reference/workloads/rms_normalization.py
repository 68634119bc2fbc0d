"""CpuRef's RmsNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import RmsNormalization
from armpy.ops.operation import Array
from armpy_reference.reals import mean_in_range
from armpy_reference.workload import ReferenceWorkload


class RmsNormalizationWorkload(ReferenceWorkload[RmsNormalization]):
    """Means along the axes with NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float64; round once."""
        values = inputs[0].astype(np.float64)
        mean = mean_in_range(np.square(values), self.operation.axes, inputs[0].dtype)
        values /= np.sqrt(mean + self.operation.eps)
        if len(inputs) > 1 and inputs[1] is not None:
            values *= inputs[1]
        outputs[0][...] = values
