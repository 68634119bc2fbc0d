"""CpuRef's ArgMinMax."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import ArgMinMax, ArgMinMaxFunction
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.workload import ReferenceWorkload


class ArgMinMaxWorkload(ReferenceWorkload[ArgMinMax]):
    """Find positions with NumPy, which takes the first of equal elements, and of NaNs, too."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Find positions of stored elements; scales are positive and keep their order."""
        values = inputs[0]
        axis = normalize_axis(self.operation.axis or 0, values.ndim)
        is_max = self.operation.function is ArgMinMaxFunction.MAX
        outputs[0][...] = values.argmax(axis) if is_max else values.argmin(axis)
