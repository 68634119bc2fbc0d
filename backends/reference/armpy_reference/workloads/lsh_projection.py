"""CpuRef's LshProjection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.ops import LshProjection, LshProjectionType
from armpy.ops.operation import Array
from armpy_reference.farm_hash import fingerprint64
from armpy_reference.workload import ReferenceWorkload


class LshProjectionWorkload(ReferenceWorkload[LshProjection]):
    """Hash every item with every seed."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Add up in float64; signatures are modulo 2**32."""
        seeds, items = inputs[0].astype("<f4"), inputs[1]
        weights = np.ones(len(items)) if len(inputs) < 3 else inputs[2].astype(np.float64)
        scores = [_hashes(seed, items) @ weights for seed in seeds.reshape(-1)]
        bits = np.array(scores).reshape(seeds.shape) > 0
        kind = self.operation.projection_type
        if kind is LshProjectionType.DENSE:
            outputs[0][...] = bits.reshape(-1)
            return
        num_hashes, num_bits = bits.shape
        values = np.left_shift(1, np.arange(num_bits - 1, -1, -1, dtype=np.int64))
        signatures = bits.astype(np.int64) @ values
        if kind is LshProjectionType.SPARSE:
            signatures += np.arange(num_hashes, dtype=np.int64) << num_bits
        outputs[0][...] = signatures.astype(np.int32)


def _hashes(seed: np.float32, items: Array) -> npt.NDArray[np.float64]:
    """Signed hashes of a seed's bytes and each item's (items,)."""
    stored = np.ascontiguousarray(items).reshape(len(items), -1).view(np.uint8)
    prefix = np.broadcast_to(np.frombuffer(seed.tobytes(), np.uint8), (len(items), 4))
    hashes = fingerprint64(np.concatenate([prefix, stored], axis=1))
    return hashes.view(np.int64).astype(np.float64)
