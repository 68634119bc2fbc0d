"""CpuRef's RandomNormal."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import RandomNormal
from armpy.ops.operation import Array
from armpy_reference.philox import philox_normal, seeds_of
from armpy_reference.workload import ReferenceWorkload


class RandomNormalWorkload(ReferenceWorkload[RandomNormal]):
    """Standard normal numbers, scaled and moved."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in the output's type."""
        operation, out = self.operation, outputs[0]
        seeds = seeds_of(operation.seed, operation.seed2)
        numbers = philox_normal(*seeds, out.size, out.dtype)
        number = out.dtype.type
        scaled = numbers * number(operation.deviation) + number(operation.mean)
        out[...] = scaled.reshape(out.shape)
