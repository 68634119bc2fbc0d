"""CpuRef's Determinant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Determinant
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class DeterminantWorkload(ReferenceWorkload[Determinant]):
    """LAPACK's factors, through NumPy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float64; round once."""
        outputs[0][...] = np.linalg.det(inputs[0].astype(np.float64))
