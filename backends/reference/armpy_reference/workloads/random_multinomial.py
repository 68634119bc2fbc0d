"""CpuRef's RandomMultinomial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import RandomMultinomial
from armpy.ops.operation import Array
from armpy_reference.philox import philox_uniform, seeds_of
from armpy_reference.workload import ReferenceWorkload


class RandomMultinomialWorkload(ReferenceWorkload[RandomMultinomial]):
    """Look uniform random numbers up in the sums of probabilities."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float64."""
        logits, out = inputs[0].astype(np.float64), outputs[0]
        seed, stream = seeds_of(*inputs[1].tolist())
        uniform = philox_uniform(seed, stream, out.size).reshape(out.shape)
        for row, numbers, target in zip(logits, uniform, out, strict=True):
            sums = np.cumsum(_weights(row))
            classes = np.searchsorted(sums, numbers * sums[-1], side="right")
            target[...] = np.minimum(classes, len(row) - 1)


def _weights(logits: Array) -> Array:
    """Probabilities in parts of the highest one; 0 where the logit is not finite."""
    is_finite = np.isfinite(logits)
    highest = logits[is_finite].max(initial=-np.inf)
    return np.where(is_finite, np.exp(logits - highest), 0.0)
