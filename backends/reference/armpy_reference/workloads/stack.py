"""CpuRef's Stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Stack
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class StackWorkload(ReferenceWorkload[Stack]):
    """Copy each input to its place along the new axis."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        np.stack(inputs, self.operation.axis, out=outputs[0])
