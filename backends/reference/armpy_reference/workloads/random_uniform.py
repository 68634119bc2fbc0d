"""CpuRef's RandomUniform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import RandomUniform
from armpy.ops.operation import Array
from armpy_reference.philox import philox_uniform, philox_uniform_singles, seeds_of
from armpy_reference.workload import ReferenceWorkload


class RandomUniformWorkload(ReferenceWorkload[RandomUniform]):
    """Numbers below 1, spread over the range."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in the output's type."""
        operation, out = self.operation, outputs[0]
        draw = philox_uniform_singles if out.dtype == np.float32 else philox_uniform
        numbers = draw(*seeds_of(operation.seed, operation.seed2), out.size)
        number = out.dtype.type
        low, high = number(operation.low), number(operation.high)
        out[...] = (numbers * (high - low) + low).reshape(out.shape)
