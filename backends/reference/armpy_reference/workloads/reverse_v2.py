"""CpuRef's ReverseV2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import ReverseV2
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class ReverseV2Workload(ReferenceWorkload[ReverseV2]):
    """Copy a view with reversed axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        outputs[0][...] = np.flip(inputs[0], self.operation.axes or ())
