"""CpuRef's NonZero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import NonZero
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class NonZeroWorkload(ReferenceWorkload[NonZero]):
    """Find positions with NumPy."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Any numbers; NaN is not 0."""
        return (np.stack(np.nonzero(np.atleast_1d(inputs[0]))).astype(np.int64),)
