"""CpuRef's Rank."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Rank
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class RankWorkload(ReferenceWorkload[Rank]):
    """Write the input's number of axes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write; the input's elements do not matter."""
        outputs[0][...] = inputs[0].ndim
