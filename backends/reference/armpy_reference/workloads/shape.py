"""CpuRef's Shape."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Shape
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class ShapeWorkload(ReferenceWorkload[Shape]):
    """Write the input's shape."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; the input's elements do not matter."""
        outputs[0][...] = inputs[0].shape
